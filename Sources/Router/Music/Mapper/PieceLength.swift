/// How long a piece is: whole bars, or half ones where it is short, and time for it to die away.
struct PieceLength: Equatable {
  /// Quarters (crotchets) of notes, an even number.
  let beats: Int
  let milliseconds: Int

  /// What a piece may last.
  static let range = 4_000...20_000
  /// For the last notes and the reverberation, at least.
  private static let tailMilliseconds = 2_400

  init(intensity: Double, tempo: Double) {
    let wanted = Self.range.lowerBound + Int(intensity * Double(Self.range.count - 1))
    let beatMilliseconds = 60_000 / tempo
    let most = Int(Double(Self.range.upperBound - Self.tailMilliseconds) / beatMilliseconds) / 2 * 2
    let nearest = Int((Double(wanted - Self.tailMilliseconds) / beatMilliseconds / 2).rounded()) * 2
    let few = nearest.clamped(to: 2...most)
    // Over two bars, whole ones alone.
    beats = few > 8 ? few / 4 * 4 : few
    let sounding = Int((Double(beats) * beatMilliseconds).rounded(.up))
    milliseconds = (sounding + Self.tailMilliseconds).clamped(to: Self.range)
  }
}
