import RouterCore
import Testing

@Suite struct `Bodies that are being read` {
  private let stranger = ClientID(subject: nil, address: "192.0.2.1")
  private let github = ClientID(subject: nil, address: "140.82.112.1")

  @Test func `find room in 120 at once`() {
    var budget = WebhookBodyBudget()
    let numbers = (0..<120).map { _ in budget.begin(from: github).number }
    for number in numbers { #expect(budget.add(200_000, to: number) == .taken) }
    for number in numbers { budget.end(number) }
    #expect(budget.byteCount == 0)
  }

  @Test func `make room by the oldest of the same address`() {
    var budget = WebhookBodyBudget(byteLimit: 100, addressByteLimit: 40)
    let held = (0..<4).map { _ in budget.begin(from: stranger).number }
    for number in held { #expect(budget.add(10, to: number) == .taken) }
    let quick = budget.begin(from: stranger).number
    #expect(budget.add(15, to: quick) == .evicting([held[0], held[1]]))
    #expect(budget.byteCount == 35)
    // What was given up takes no more.
    #expect(budget.add(1, to: held[0]) == .refused)
    // The oldest itself gives way to nobody's harm.
    #expect(budget.add(10, to: held[2]) == .refused)
    #expect(budget.byteCount == 25)
  }

  @Test func `make room by the address that holds most`() {
    var budget = WebhookBodyBudget(byteLimit: 100, addressByteLimit: 40)
    var victims: [Int] = []
    for number in 0..<3 {
      let address = ClientID(subject: nil, address: "192.0.2.\(number)")
      let body = budget.begin(from: address).number
      #expect(budget.add(30 + number, to: body) == .taken)
      victims.append(body)
    }
    let delivery = budget.begin(from: github).number
    #expect(budget.add(5, to: delivery) == .taken)
    #expect(budget.add(5, to: delivery) == .evicting([victims[2]]))
    #expect(budget.byteCount == 71)
  }

  @Test func `keep their room while their signature is looked at`() {
    var budget = WebhookBodyBudget(byteLimit: 100, addressByteLimit: 40)
    let whole = budget.begin(from: github).number
    #expect(budget.add(40, to: whole) == .taken)
    budget.finish(whole)
    let next = budget.begin(from: github).number
    #expect(budget.add(1, to: next) == .refused)
    budget.end(whole)
    #expect(budget.byteCount == 0)
    #expect(budget.add(1, to: budget.begin(from: github).number) == .taken)
  }

  @Test func `are so many of an address`() {
    var budget = WebhookBodyBudget()
    let first = budget.begin(from: stranger).number
    for _ in 1..<RouterLimits.webhookAddressBodyCount {
      #expect(budget.begin(from: stranger).evicted == nil)
    }
    #expect(budget.begin(from: github).evicted == nil)
    #expect(budget.begin(from: stranger).evicted == first)
  }

  @Test func `are given up when they drip`() {
    var budget = WebhookBodyBudget()
    let body = budget.begin(from: stranger).number
    _ = budget.add(RouterLimits.webhookPaceByteCount, to: body)
    let quick = budget.keepsPace(body)
    _ = budget.add(RouterLimits.webhookPaceByteCount - 1, to: body)
    let slow = budget.keepsPace(body)
    budget.finish(body)
    let whole = budget.keepsPace(body)
    #expect(quick && !slow && whole)
  }
}
