extension StringProtocol {
  /// A client's own words in an answer to it: in quotes, and not so long that answers are worth asking for.
  public var quoted: String { shortened.debugDescription }

  /// The beginning, by scalars: a single `Character` may be as long as the whole.
  public var shortened: String {
    String(String.UnicodeScalarView(unicodeScalars.prefix(WireLimits.maximumQuotedScalarCount)))
  }
}
