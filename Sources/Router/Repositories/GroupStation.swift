import WireProtocol

/// A session in which several repositories are heard: what `--github-station` names.
package struct GroupStation: Sendable, Equatable {
  package let id: SessionID
  package let source: GitHubSource

  /// Reads `ID=owner/name` or `ID=owner/*`; nil for what is none.
  package init?(_ text: String) {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    guard parts.count == 2, let id = try? SessionID(parts[0]), let source = GitHubSource(parts[1]),
      // That one is a repository's own.
      !parts[0].allSatisfy(\.isNumber)
    else { return nil }
    self.id = id
    self.source = source
  }
}
