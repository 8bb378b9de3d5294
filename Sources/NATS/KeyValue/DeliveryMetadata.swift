/// Metadata of a delivered message, parsed from its reply subject:
/// `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>`, with domain and
/// account before the stream and a token behind where servers have them.
package struct DeliveryMetadata: Equatable {
  package var streamSequence: UInt64
  package var consumerSequence: UInt64
  package var pending: UInt64

  package init?(_ reply: String) {
    let tokens = reply.split(separator: ".")
    guard tokens.count == 9 || tokens.count >= 11, tokens[0] == "$JS", tokens[1] == "ACK" else {
      return nil
    }
    let first = tokens.count == 9 ? 5 : 7
    guard let stream = UInt64(tokens[first]), let consumer = UInt64(tokens[first + 1]),
      let pending = UInt64(tokens[first + 3])
    else { return nil }
    streamSequence = stream
    consumerSequence = consumer
    self.pending = pending
  }
}
