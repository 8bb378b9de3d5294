extension Dictionary where Value == Int {
  /// Takes away from what is counted of a key. A count that comes to nothing is not kept.
  @inlinable
  public mutating func countDown(_ key: Key, by amount: Int = 1) {
    guard let count = self[key] else { return }
    self[key] = count > amount ? count - amount : nil
  }
}
