import WireProtocol

/// Who plays a language.
struct LanguageInstruments: Equatable {
  let melody: Score.Instrument
  let harmony: Score.Instrument
  let bass: Score.Instrument

  /// For a language in GitHub's spelling, whatever its case. One that is not in the table has a family by its name's
  /// hash; a repository without one has the keys.
  static func of(_ language: String?) -> LanguageInstruments {
    guard let language else { return keys }
    let name = language.lowercased()
    return table[name] ?? families[Int(hash(name) % UInt32(families.count))]
  }

  private static let plucked = LanguageInstruments(melody: .pluck, harmony: .strings, bass: .bass)
  private static let keys = LanguageInstruments(melody: .electricPiano, harmony: .pad, bass: .bass)
  private static let mallets = LanguageInstruments(melody: .marimba, harmony: .electricPiano, bass: .bass)
  private static let bells = LanguageInstruments(melody: .bell, harmony: .choir, bass: .triangle)
  private static let winds = LanguageInstruments(melody: .flute, harmony: .strings, bass: .bass)
  private static let brass = LanguageInstruments(melody: .brass, harmony: .electricPiano, bass: .bass)
  private static let analogue = LanguageInstruments(melody: .saw, harmony: .pad, bass: .bass)
  private static let chips = LanguageInstruments(melody: .square, harmony: .pluck, bass: .triangle)

  private static let families = [plucked, keys, mallets, bells, winds, brass, analogue, chips]

  private static let table: [String: LanguageInstruments] = [
    // Close to the metal: strings that are plucked.
    "c": plucked, "c++": plucked, "rust": plucked, "zig": plucked,
    // What is read like prose: keys.
    "python": keys, "swift": keys, "kotlin": keys, "julia": keys,
    // What scripts other things: mallets.
    "javascript": mallets, "typescript": mallets, "vue": mallets, "lua": mallets, "php": mallets,
    // What is proved: bells.
    "haskell": bells, "ocaml": bells, "clojure": bells, "elm": bells, "f#": bells,
    // What carries messages: winds.
    "go": winds, "elixir": winds, "erlang": winds, "dart": winds,
    // What big houses play: brass.
    "java": brass, "c#": brass, "scala": brass, "cobol": brass,
    // What shows pictures: analogue synthesisers.
    "html": analogue, "css": analogue, "ruby": analogue, "objective-c": analogue,
    // What is near to the machine's own voice: chips.
    "assembly": chips, "shell": chips, "makefile": chips, "perl": chips, "vim script": chips,
  ]

  /// FNV-1a of 32 bits: the same on every machine and in every run, unlike `Hasher`.
  private static func hash(_ name: String) -> UInt32 {
    name.utf8.reduce(0x811C_9DC5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
  }
}
