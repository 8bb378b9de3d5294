import WireProtocol

/// Who asked for something, by a number; the Router itself has none.
package struct RequesterID: Hashable, Sendable {
  package let number: Int

  package init(number: Int) { self.number = number }
}

/// Names plays, so that what the engine says of one can be told from what it says of any other.
package struct PlayTags: Sendable, Equatable {
  private let prefix: String
  private var count = 0

  /// - Parameter prefix: unique to this start of the Router.
  package init(prefix: String) { self.prefix = prefix }

  package mutating func next(for entry: QueueEntry) -> String {
    count += 1
    return "\(entry.id).\(prefix)-\(count)"
  }

  /// The entry that a tag is of.
  package static func entryID(_ tag: String) -> String { String(tag.prefix { $0 != "." }) }
}

extension Playback {
  /// What a step may look at besides the session's own state.
  package struct Context: Sendable {
    /// Of the next packet while the session streams.
    package var positionMilliseconds: Int
    package var nowMilliseconds: Int
    package var isEngineConnected: Bool
    package var crashes: CrashTracker
    package var tags: PlayTags

    package init(
      positionMilliseconds: Int, nowMilliseconds: Int, isEngineConnected: Bool, crashes: CrashTracker,
      tags: PlayTags
    ) {
      self.positionMilliseconds = positionMilliseconds
      self.nowMilliseconds = nowMilliseconds
      self.isEngineConnected = isEngineConnected
      self.crashes = crashes
      self.tags = tags
    }
  }

  /// What is to be done after a step. Without a requester ID, the Router itself asked.
  package enum Action: Sendable, Equatable {
    /// To be followed by `sent` or `notSent`.
    case send(EngineCommand.SessionAction, for: RequesterID?)
    /// Brings the session to disk; to be followed by `written`.
    case write(Write, for: RequesterID?)
    case save
    /// To be followed by `resume(_:)` once the whole queue is in memory.
    case loadQueue(then: Step)
    /// To be followed by `retry`.
    case startRetryTimer
    /// Registers, before the change is saved, the answer that the requester will get.
    case willAnswer(RequesterID?, Answer)
    /// Answers the requester, and sends the same to all other listeners.
    case answer(RequesterID?, EngineEvent)
    /// Answers with the queue, and tells all others where it has changed.
    case answerQueue(RequesterID?, QueueView, hasChanged: Bool)
    case refuse(RequesterID?, ErrorReport)
    /// What was asked for could not be written, and is not in effect.
    case refuseUnwritten(RequesterID?, ErrorReport)
    case broadcast(EngineEvent)
    case announceQueue(QueueView)
    /// The same, once it is saved.
    case saveThenAnnounceQueue(QueueView)
    /// To be taken as an event of the engine.
    case report(EngineEvent)
    /// Keeps a play until its address may be tried.
    case hold(StartingPlay, for: RequesterID?)
    /// Lets a play that is held go, since another has taken its place.
    case releaseHeld
    /// The play of that tag has its first packets.
    case playBegan(tag: String)
    /// The play of that tag is over, or comes to nothing.
    case playEnded(tag: String)
    /// To be kept with what the session may be undone to.
    case note(Happening)
    /// An event has been followed.
    case followed(EngineEvent.Body)
    /// Says that a session is going to be asked for again.
    case logResumption(PlayRequest)
  }

  package enum Answer: Sendable, Equatable {
    case event(EngineEvent)
    case queue(QueueView)
  }

  /// What is written, and what is done once it is on disk.
  package enum Write: Sendable, Equatable {
    case play(PlayRequest, heldAtMilliseconds: Int?)
    case prepare(PlayRequest)
    case command(EngineCommand.SessionAction)
    /// A play that was only deferred has been stopped here.
    case stopped(EngineEvent, before: SessionSnapshot, wasLost: Bool)
    case volume(EngineEvent)
    case queue(answer: QueueView, hasChanged: Bool, stops: Bool)
  }

  /// What needs the whole queue in memory.
  package enum Step: Sendable, Equatable {
    case follow(EngineEvent)
    case advance(after: EngineEvent.EndReason, from: String?)
    case resumeLost(isSameEngine: Bool)
    /// As `Playback.move`.
    case move(to: SessionSnapshot, wasPlaying: Bool)
  }

  /// Whether an address may be asked for now (`CrashTracker`).
  package enum Clearance: Sendable, Equatable {
    case send
    /// Another that the engine may have died of is on trial.
    case wait
    case refuse(ErrorReport)
  }
}
