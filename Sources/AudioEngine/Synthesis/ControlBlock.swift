/// What the control rate is, and where in it a sound is.
enum ControlBlock {
  /// Samples between two settings of what changes slowly (envelopes, filters, vibrato), counted from the
  /// score's first: 1.3 ms, too short for a step to be heard.
  static let sampleCount = 64
}

/// Samples that are rendered in one go: within one control block, and in which no note begins.
struct Span {
  /// Samples between the control values' last setting and the first of these.
  var offset: Int
  var count: Int
}
