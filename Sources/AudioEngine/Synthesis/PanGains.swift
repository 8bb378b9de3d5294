/// The shares of left and right, of equal power wherever it is; 1 and 1 in the middle.
struct PanGains {
  var left: Float
  var right: Float

  /// - Parameter pan: −1, left, to 1, right.
  init(_ pan: Double) {
    let turns = (pan + 1) / 8
    left = Float(PortableMath.cosine(turns: turns) * 2.0.squareRoot())
    right = Float(PortableMath.sine(turns: turns) * 2.0.squareRoot())
  }
}
