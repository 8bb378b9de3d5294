import WireProtocol

/// A mapping file's JSON, read strictly.
extension MusicMapping {
  package init(from decoder: any Decoder) throws {
    let fields = try MappingFields(decoder)
    try fields.onlyAllow(["scales", "tempo", "instruments", "languages", "gains", "events"])
    self = .standard
    if let scales = try fields.object("scales") { self.scales = try Scales(scales) }
    if let tempo = try fields.object("tempo") { try takeTempo(tempo) }
    if let instruments = try fields.object("instruments") { self.instruments = try Instruments(instruments) }
    if let languages = try fields.object("languages") { try takeLanguages(languages) }
    if let gains = try fields.object("gains") { self.gains = try MusicalParameters.Gains(gains) }
    if let events = try fields.object("events") {
      try events.onlyAllow(RepositoryEvent.Kind.allCases.map(\.rawValue))
      for kind in RepositoryEvent.Kind.allCases {
        if let event = try events.object(kind.rawValue) { self.events[kind] = try Event(event) }
      }
    }
  }

  private mutating func takeTempo(_ fields: MappingFields) throws {
    try fields.onlyAllow(["slowest", "fastest"])
    slowestTempo = try fields.number("slowest", in: Tempo.range) ?? slowestTempo
    fastestTempo = try fields.number("fastest", in: Tempo.range) ?? fastestTempo
    guard slowestTempo < fastestTempo else { throw Problem("tempo.slowest is not below tempo.fastest") }
  }

  private mutating func takeLanguages(_ fields: MappingFields) throws {
    guard fields.names.count <= Self.maximumLanguages else {
      throw Problem("languages names over \(Self.maximumLanguages) languages")
    }
    for name in fields.names {
      if let language = try fields.object(name) { languages[name.lowercased()] = try Instruments(language) }
    }
  }
}

extension MusicMapping.Scales {
  fileprivate init(_ fields: MappingFields) throws {
    try fields.onlyAllow(MusicalParameters.Mood.allCases.map(\.rawValue))
    dark = try fields.words("dark", of: Scale.allCases)
    ordinary = try fields.words("ordinary", of: Scale.allCases)
    bright = try fields.words("bright", of: Scale.allCases)
  }
}

extension MusicMapping.Instruments {
  fileprivate init(_ fields: MappingFields) throws {
    try fields.onlyAllow(["melody", "harmony", "bass"])
    let tuned = Score.Instrument.allCases.filter { $0 != .drums }
    melody = try fields.word("melody", of: tuned)
    harmony = try fields.word("harmony", of: tuned)
    bass = try fields.word("bass", of: tuned)
  }
}

extension MusicMapping.Event {
  fileprivate init(_ fields: MappingFields) throws {
    try fields.onlyAllow(["silent", "tension", "resolution", "activity", "growth", "intensity"])
    isSilent = try fields.flag("silent") ?? false
    tension = try fields.number("tension", in: 0...1)
    resolution = try fields.number("resolution", in: 0...1)
    activity = try fields.number("activity", in: 0...1)
    growth = try fields.number("growth", in: 0...1)
    intensity = try fields.number("intensity", in: 0...1)
  }
}

extension MusicalParameters.Gains {
  fileprivate init(_ fields: MappingFields) throws {
    try fields.onlyAllow(Score.Role.allCases.map(\.rawValue))
    melody = try fields.number("melody", in: Self.range) ?? melody
    harmony = try fields.number("harmony", in: Self.range) ?? harmony
    bass = try fields.number("bass", in: Self.range) ?? bass
    percussion = try fields.number("percussion", in: Self.range) ?? percussion
    bed = try fields.number("bed", in: Self.range) ?? bed
  }
}
