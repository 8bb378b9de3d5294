import Crypto
import HTTPTypes
import Hummingbird
import Logging
import ServiceSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The web page, read once at the start and served from memory.
package struct PlaygroundFiles: Sendable {
  /// One file.
  package struct File: Sendable {
    package var bytes: [UInt8]
    package var contentType: String
    /// Of the content, so that a browser asks again and is told when nothing has changed.
    package var entityTag: String
  }

  /// What loads a page again of which a part is missing is in the page itself, so that it is not missing, too.
  private static let inlineScript = "load-again.js"

  /// By path below the root: `index.html`, `js/player.js`.
  package let files: [String: File]
  private let contentSecurityPolicy: String

  /// Reads every file below a folder.
  package init(folder: String) throws {
    var contents: [String: [UInt8]] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder) {
      let full = folder + "/" + path
      var isFolder = false
      guard FileManager.default.fileExists(atPath: full, isDirectory: &isFolder), !isFolder else { continue }
      contents[path] = FileManager.default.contents(atPath: full).map(Array.init)
    }
    let script = contents.removeValue(forKey: Self.inlineScript) ?? []
    let element = "<script>\(String(decoding: script, as: UTF8.self))</script>"
    for (path, bytes) in contents where path.hasSuffix(".html") {
      let page = String(decoding: bytes, as: UTF8.self)
      contents[path] = Array(
        page.replacing("<script src=\"\(Self.inlineScript)\"></script>", with: element).utf8)
    }
    var files: [String: File] = [:]
    for (path, bytes) in contents {
      files[path] = File(
        bytes: bytes, contentType: Self.contentType(of: path), entityTag: ContentHash.entityTag(bytes))
    }
    self.files = files
    contentSecurityPolicy = Self.contentSecurityPolicy(allowing: script)
  }

  /// Scripts, styles and workers of the Router's alone; sound from memory; connections to us alone (`'self'` is the
  /// WebSocket of the same host and port too), so that whatever got into the page could send nothing elsewhere; the
  /// pictures that other sites have for their music, and our own where they are fetched with a token (`blob:`).
  private static func contentSecurityPolicy(allowing script: [UInt8]) -> String {
    let hash = Data(SHA256.hash(data: script)).base64EncodedString()
    return "default-src 'self'; script-src 'self' 'sha256-\(hash)'; base-uri 'none'; form-action 'self'; "
      + "frame-ancestors 'none'; connect-src 'self'; media-src 'self' blob:; worker-src 'self' blob:; "
      + "img-src 'self' data: blob: https:; style-src 'self' 'unsafe-inline'"
  }

  package static var usualFolder: String { resourceFolder + "/Resources" }

  /// Where SwiftPM puts the resources: beside the executable. `Bundle.module` would find them too, and end
  /// the process where it does not.
  static var resourceFolder: String {
    let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let folder = executable.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return folder.joined(separator: "/") + "/antiphon_RouterCore.resources"
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    for (path, file) in files {
      router.get(RouterPath(path)) { request, _ in response(file, to: request) }
      if path == "index.html" {
        router.get("/") { request, _ in response(file, to: request) }
      }
    }
  }

  private func response(_ file: File, to request: Request) -> Response {
    var headers: HTTPFields = [
      .contentType: file.contentType, .eTag: file.entityTag, .cacheControl: "no-cache",
      .contentSecurityPolicy: contentSecurityPolicy,
    ]
    if request.headers[.ifNoneMatch] == file.entityTag {
      headers[.contentType] = nil
      return Response(status: .notModified, headers: headers)
    }
    return Response(
      status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: file.bytes)))
  }

  package static func contentType(of path: String) -> String {
    switch path.split(separator: ".").last.map({ $0.lowercased() }) {
    case "html": "text/html; charset=utf-8"
    case "js", "mjs": "text/javascript; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "json", "webmanifest": "application/json"
    case "svg": "image/svg+xml"
    case "png": "image/png"
    case "ico": "image/x-icon"
    case "wasm": "application/wasm"
    case "woff2": "font/woff2"
    case "ogg", "opus": "audio/ogg"
    case "txt", "md": "text/plain; charset=utf-8"
    default: "application/octet-stream"
    }
  }
}
