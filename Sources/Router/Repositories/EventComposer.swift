import Logging
import WireProtocol

/// Makes events into music, as the mapping of their repository says.
package struct EventComposer: Sendable {
  let repositories: Repositories
  let logger: Logger

  /// - Parameter history: of before the event, and with it afterwards.
  func compose(_ logged: LoggedEvent, _ history: inout MusicHistory) -> EventLog.Composed {
    let mapping = repositories.mapping(for: logged.event.repositoryID).mapping
    let parameters = MusicMapper.parameters(for: logged.event, history: history, mapping: mapping)
    let score =
      parameters.isSilent || logged.event.isPast == true
      ? nil : checked(Composer.piece(for: logged.event, parameters: parameters, history: &history), logged)
    return EventLog.Composed(
      number: logged.number, event: logged.event, parameters: parameters, score: score)
  }

  private func checked(_ score: Score, _ logged: LoggedEvent) -> Score? {
    do {
      return try score.checked()
    } catch {
      logger.error(
        "the music of the delivery \(logged.event.deliveryID) is no score: \(error)",
        metadata: ["session": "\(logged.event.repositoryID)"])
      return nil
    }
  }
}
