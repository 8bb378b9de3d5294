import Glibc
import ServiceSupport

/// The cookies of a signed-in browser, as browsers' add-ons and yt-dlp write them: seven fields a line, with tabs between.
package enum CookieFile {
  private static let maximumByteCount = 1 << 20
  private static let fieldCount = 7
  /// How those lines begin that JavaScript may not see; other lines with `#` are comments.
  private static let hiddenMark = "#HttpOnly_"

  /// - Throws: which line is wrong, and never what stands in it.
  package static func read(_ path: String) throws(FileProblem) -> [Cookie] {
    // systemd gives what it hands to a service alone the mode 440, and the service by an access list.
    let folder = getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) + "/" }
    let isCredential = folder.map(path.hasPrefix) == true
    let bytes = try SettingFile.read(
      path, maximumByteCount: maximumByteCount, refused: S_IRWXO | (isCredential ? S_IWGRP : S_IRWXG))
    let cookies = try parse(String(decoding: bytes, as: UTF8.self), path: path)
    guard !cookies.isEmpty else { throw FileProblem("\(path) holds no cookie") }
    return cookies
  }

  package static func parse(_ text: String, path: String) throws(FileProblem) -> [Cookie] {
    var cookies: [Cookie] = []
    let lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }
    for (index, line) in lines.enumerated() {
      let isHidden = line.hasPrefix(hiddenMark)
      if line.allSatisfy(\.isWhitespace) || line.hasPrefix("#") && !isHidden { continue }
      let fields = (isHidden ? line.dropFirst(hiddenMark.count) : line)
        .split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      guard fields.count == fieldCount, ["TRUE", "FALSE"].contains(fields[1]), fields[2].hasPrefix("/"),
        ["TRUE", "FALSE"].contains(fields[3]), let expires = fields[4].isEmpty ? 0 : Double(fields[4]),
        expires.isFinite
      else {
        throw FileProblem(
          "\(path) is no file of cookies in Netscape's format: line \(index + 1) has not its seven fields")
      }
      // One without a name cannot be sent as a pair.
      guard !fields[5].isEmpty else { continue }
      let domain = fields[0].lowercased()
      cookies.append(
        Cookie(
          name: fields[5], value: fields[6],
          domain: domain.hasPrefix(".") ? String(domain.dropFirst()) : domain,
          includesSubdomains: fields[1] == "TRUE", path: fields[2], isSecure: fields[3] == "TRUE",
          expires: expires > 0 ? expires : nil))
    }
    return cookies
  }
}
