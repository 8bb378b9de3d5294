/// FNV-1a, 64 bits: tells versions of a file apart where nobody gains from making two look alike.
public enum ContentHash {
  /// As an HTTP entity tag, with its quotes.
  public static func entityTag(_ bytes: some Sequence<UInt8>) -> String {
    "\"\(hexadecimal(bytes))\""
  }

  /// In digits alone.
  public static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return String(hash, radix: 16)
  }
}
