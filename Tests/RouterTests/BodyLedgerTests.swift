import RouterCore
import Testing

@Suite struct `Bodies that are being read` {
  private let stranger = ClientID(subject: nil, address: "192.0.2.1")
  private let github = ClientID(subject: nil, address: "140.82.112.1")

  @Test func `find room in 120 at once`() {
    var ledger = BodyLedger()
    let numbers = (0..<120).map { _ in ledger.begin(from: github).number }
    for number in numbers { #expect(ledger.add(200_000, to: number) == .taken) }
    for number in numbers { ledger.end(number) }
    #expect(ledger.byteCount == 0)
  }

  @Test func `make room by the oldest of the same address`() {
    var ledger = BodyLedger(byteLimit: 100, addressByteLimit: 40)
    let held = (0..<4).map { _ in ledger.begin(from: stranger).number }
    for number in held { #expect(ledger.add(10, to: number) == .taken) }
    let quick = ledger.begin(from: stranger).number
    #expect(ledger.add(15, to: quick) == .instead(of: [held[0], held[1]]))
    #expect(ledger.byteCount == 35)
    // What was given up takes no more.
    #expect(ledger.add(1, to: held[0]) == .refused)
    // The oldest itself gives way to nobody's harm.
    #expect(ledger.add(10, to: held[2]) == .refused)
    #expect(ledger.byteCount == 25)
  }

  @Test func `make room by the address that holds most`() {
    var ledger = BodyLedger(byteLimit: 100, addressByteLimit: 40)
    var victims: [Int] = []
    for number in 0..<3 {
      let address = ClientID(subject: nil, address: "192.0.2.\(number)")
      let body = ledger.begin(from: address).number
      #expect(ledger.add(30 + number, to: body) == .taken)
      victims.append(body)
    }
    let delivery = ledger.begin(from: github).number
    #expect(ledger.add(5, to: delivery) == .taken)
    #expect(ledger.add(5, to: delivery) == .instead(of: [victims[2]]))
    #expect(ledger.byteCount == 71)
  }

  @Test func `keep their room while their signature is looked at`() {
    var ledger = BodyLedger(byteLimit: 100, addressByteLimit: 40)
    let whole = ledger.begin(from: github).number
    #expect(ledger.add(40, to: whole) == .taken)
    ledger.finish(whole)
    let next = ledger.begin(from: github).number
    #expect(ledger.add(1, to: next) == .refused)
    ledger.end(whole)
    #expect(ledger.byteCount == 0)
    #expect(ledger.add(1, to: ledger.begin(from: github).number) == .taken)
  }

  @Test func `are so many of an address`() {
    var ledger = BodyLedger()
    let first = ledger.begin(from: stranger).number
    for _ in 1..<RouterLimits.webhookAddressBodyCount {
      #expect(ledger.begin(from: stranger).insteadOf == nil)
    }
    #expect(ledger.begin(from: github).insteadOf == nil)
    #expect(ledger.begin(from: stranger).insteadOf == first)
  }

  @Test func `are given up when they drip`() {
    var ledger = BodyLedger()
    let body = ledger.begin(from: stranger).number
    _ = ledger.add(RouterLimits.webhookPaceByteCount, to: body)
    let quick = ledger.keepsPace(body)
    _ = ledger.add(RouterLimits.webhookPaceByteCount - 1, to: body)
    let slow = ledger.keepsPace(body)
    ledger.finish(body)
    let whole = ledger.keepsPace(body)
    #expect(quick && !slow && whole)
  }
}
