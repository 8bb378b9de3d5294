/// What `--github-repository` names: `owner/name`, or `owner/*` for all of an owner's repositories.
package struct GitHubSource: Sendable, Hashable {
  /// As it was written.
  package let text: String
  private let owner: String
  /// nil for all of them.
  private let name: String?

  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    let isEveryName = parts.last == "*"
    guard parts.count == 2, GitHubEnvelope.Repository.isName(isEveryName ? "\(parts[0])/all" : text),
      // They would lead elsewhere in the API.
      !parts.contains("."), !parts.contains("..")
    else { return nil }
    self.text = text
    owner = parts[0]
    name = isEveryName ? nil : parts[1]
  }

  /// Where its events are, the first of which that there is. An owner is an organisation or a person.
  var paths: [String] {
    guard let name else { return ["/orgs/\(owner)/events", "/users/\(owner)/events/public"] }
    return ["/repos/\(owner)/\(name)/events"]
  }

  /// A person's events are in other people's repositories too.
  ///
  /// - Parameter repository: `owner/name`.
  package func covers(_ repository: String) -> Bool {
    let repository = repository.lowercased()
    return name == nil
      ? repository.hasPrefix(owner.lowercased() + "/") : repository == text.lowercased()
  }
}
