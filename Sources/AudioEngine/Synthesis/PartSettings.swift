import WireProtocol

/// Where a part is in the mix.
struct PartSettings {
  let isStereo: Bool
  /// Its loudness on either side.
  let left: Float
  let right: Float
  /// What is sent to the effects.
  let reverb: Float
  let delay: Float
  let chorus: Float
  /// The index of its role among all.
  let roleIndex: Int

  init(_ voice: Score.Voice, isStereo: Bool) {
    self.isStereo = isStereo
    let pan = PanGains(voice.pan)
    left = pan.left * Float(voice.gain)
    right = pan.right * Float(voice.gain)
    reverb = Float(voice.reverb)
    delay = Float(voice.delay)
    chorus = Float(voice.chorus)
    roleIndex = Score.Role.allCases.firstIndex(of: voice.role)!
  }
}
