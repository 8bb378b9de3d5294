import NIOHTTP1
import ServiceSupport

extension RequestGuard.Subject {
  /// - Parameter head: of the request for the upgrade.
  init(webSocket head: HTTPRequestHead) {
    self.init(
      host: head.headers.first(name: "Host"), origin: head.headers.first(name: "Origin"),
      fetchSite: head.headers.first(name: "Sec-Fetch-Site"), referer: head.headers.first(name: "Referer"),
      effect: .change)
  }
}
