import NIOCore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// JetStream's JSON responses.
enum JetStreamResponses {
  struct Failure: Decodable {
    var code: Int
    var errCode: Int?
    var description: String?

    var error: KeyValueError {
      switch errCode {
      case 10071, 10164: .wrongRevision
      case 10059: .noBucket
      case 10039, 10076: .noJetStream
      // "No message found" (10037) is no failure of a read: the key has no value.
      default: .rejected(code: errCode ?? code, description ?? "")
      }
    }
  }

  private struct Envelope: Decodable {
    var error: Failure?
  }

  /// A message was stored.
  struct PublishAck: Decodable {
    var seq: UInt64
  }

  struct Empty: Decodable {}

  /// A message that the stream's leader has stored.
  struct StoredMessage: Decodable {
    struct Message: Decodable {
      var seq: UInt64
      var subject: String?
      /// Base64.
      var hdrs: Data?
      var data: Data?
    }
    var message: Message
  }

  /// A stream, as its leader knows it.
  struct Stream: Decodable {
    struct State: Decodable {
      var lastSeq: UInt64
    }
    /// RFC 3339, with up to nine decimals. Another stream of the same name was made at another time.
    var created: String
    var state: State

    var createdMilliseconds: UInt64? {
      guard let time = try? Date(created.prefix(19) + "Z", strategy: .iso8601),
        let seconds = UInt64(exactly: time.timeIntervalSince1970)
      else { return nil }
      let decimals = created.dropFirst(20).prefix { $0.isNumber }.prefix(3)
      return seconds * 1_000 + (UInt64("\(decimals)00".prefix(3)) ?? 0)
    }
  }

  /// A consumer was created.
  struct Consumer: Decodable {
    struct Delivered: Decodable {
      var consumerSeq: UInt64
    }
    /// Messages that it has sent before this response, which may arrive after it.
    var delivered: Delivered
    var numPending: UInt64

    var isEmpty: Bool { numPending == 0 && delivered.consumerSeq == 0 }
  }

  static func decode<Answer: Decodable>(
    _ type: Answer.Type, _ message: NATSMessage
  ) throws(KeyValueError) -> Answer {
    let json = Data(message.payload.readableBytesView)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    if let failure = (try? decoder.decode(Envelope.self, from: json))?.error { throw failure.error }
    do {
      return try decoder.decode(type, from: json)
    } catch {
      throw .rejected(
        code: 0, "malformed response: \(String(decoding: json.prefix(200), as: UTF8.self))")
    }
  }
}

extension KeyValueEntry {
  /// - Parameter prefix: what subjects have before the key.
  init(_ kept: JetStreamResponses.StoredMessage.Message, prefix: String) {
    let headers = kept.hdrs.map { NATSHeaders(String(decoding: $0, as: UTF8.self)) } ?? [:]
    self.init(
      key: String((kept.subject ?? "").dropFirst(prefix.count)), revision: kept.seq,
      value: KeyValueBucket.isDeletion(headers) ? nil : ByteBuffer(bytes: kept.data ?? .init()))
  }
}

/// JetStream API requests. Fields have the names of that API, in camel case.
enum JetStreamRequests {
  struct Stream: Encodable {
    var name: String
    var subjects: [String]
    var numReplicas: Int
    /// Nanoseconds; 0 is unlimited.
    var maxAge: Int64
    var maxBytes: Int
    var storage: String
    /// Of the first message; nil is 1.
    var firstSeq: UInt64?
    var maxMsgsPerSubject = 1
    var discard = "new"
    var allowDirect = true
    var allowRollupHdrs = true
    var denyDelete = true
  }

  /// A message by its sequence number.
  struct MessageBySequence: Encodable {
    var seq: UInt64
  }

  struct MessageDeletion: Encodable {
    var seq: UInt64
    /// The bytes need not be overwritten, since they are no secret.
    var noErase = true
  }

  struct Purge: Encodable {
    /// nil for all.
    var filter: String?
    /// The first that stays.
    var seq: UInt64?
  }

  struct LastMessage: Encodable {
    var lastBySubj: String
  }

  /// The first message of a subject from a sequence number on.
  struct NextMessage: Encodable {
    var nextBySubj: String
    var seq: UInt64
  }

  struct Consumer: Encodable {
    struct Configuration: Encodable {
      var deliverSubject: String
      var filterSubject: String
      var deliverPolicy: String
      var optStartSeq: UInt64?
      var headersOnly: Bool?
      var ackPolicy = "none"
      var maxDeliver = 1
      var memStorage = true
      var numReplicas = 1
      var flowControl = true
      /// Nanoseconds.
      var idleHeartbeat: Int64 = 1_000_000_000
      var inactiveThreshold: Int64 = 5_000_000_000
    }
    var streamName: String
    var config: Configuration
  }

  static func encode(_ request: some Encodable) throws(KeyValueError) -> ByteBuffer {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    do {
      return try ByteBuffer(bytes: encoder.encode(request))
    } catch { throw .rejected(code: 0, "the request cannot be encoded: \(error)") }
  }
}
