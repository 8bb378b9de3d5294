/// Asks for many things, some at a time: one round trip after another, a batch would take as long as they add up to.
enum PipelinedRequests {
  /// - Parameters:
  ///   - sizes: what each takes on the wire, about; empty where they are small. One over the limit goes alone.
  ///   - request: waits for the answer.
  /// - Returns: the answers, in the requests' order.
  static func run<Item: Sendable, Answer: Sendable>(
    _ items: [Item], sizes: [Int] = [], _ request: @escaping @Sendable (Item) async -> Answer
  ) async -> [Answer] {
    // The most frequent case, without a task.
    if items.count == 1 { return [await request(items[0])] }
    let answers = await withTaskGroup(of: (Int, Answer).self) { group in
      var answers = [Answer?](repeating: nil, count: items.count)
      var (count, byteCount) = (0, 0)
      for (index, item) in items.enumerated() {
        let size = sizes.isEmpty ? 0 : sizes[index]
        while count >= RouterLimits.archiveRequestCount
          || count > 0 && byteCount + size > RouterLimits.archiveRequestByteCount,
          let (done, answer) = await group.next()
        {
          answers[done] = answer
          count -= 1
          byteCount -= sizes.isEmpty ? 0 : sizes[done]
        }
        count += 1
        byteCount += size
        group.addTask { (index, await request(item)) }
      }
      for await (done, answer) in group { answers[done] = answer }
      return answers
    }
    return answers.compactMap(\.self)
  }
}
