import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A repository's own mapping file: what it has otherwise than the standard (`docs/music.md`, "Mapping files").
package struct MusicMapping: Decodable, Sendable, Equatable {
  /// Which scales a mood chooses from, from dark to bright; moods that are not named have the standard's.
  package var scales = Scales()
  /// Beats a minute, within `Tempo.range`.
  package var slowestTempo = Tempo.range.lowerBound
  package var fastestTempo = Tempo.range.upperBound
  /// Whatever the language.
  package var instruments = Instruments()
  /// By the language's name in lower case.
  package var languages: [String: Instruments] = [:]
  package var gains = MusicalParameters.Gains()
  /// By the event's kind.
  package var events: [RepositoryEvent.Kind: Event] = [:]

  /// Nothing otherwise.
  package static let standard = MusicMapping()
  package static let maximumByteCount = 65_536
  package static let maximumLanguages = 100

  package struct Scales: Sendable, Equatable {
    package var dark: [Scale]?
    package var ordinary: [Scale]?
    package var bright: [Scale]?
  }

  package struct Instruments: Sendable, Equatable {
    package var melody: Score.Instrument?
    package var harmony: Score.Instrument?
    package var bass: Score.Instrument?
  }

  /// What one kind of event has otherwise.
  package struct Event: Sendable, Equatable {
    package var isSilent = false
    package var tension: Double?
    package var resolution: Double?
    package var activity: Double?
    package var growth: Double?
    package var intensity: Double?
  }

  /// What is wrong with a mapping file, in one line that names the field.
  package struct Problem: Error, CustomStringConvertible, Equatable {
    package let description: String

    init(_ description: String) {
      self.description = description
    }
  }

  private init() {}

  /// Reads a mapping file.
  package init(json: [UInt8]) throws(Problem) {
    guard json.count <= Self.maximumByteCount else {
      throw Problem("the mapping file has over \(Self.maximumByteCount) bytes")
    }
    do {
      self = try JSONDecoder().decode(MusicMapping.self, from: Data(json))
    } catch let problem as Problem {
      throw problem
    } catch {
      throw Problem("the mapping file is not JSON")
    }
  }
}
