import CFFmpeg

/// Pictures inside a container, which libavformat finds when it opens one; no video decoder is needed.
extension Container {
  /// The cover: one that can be shown and says it is the front, else the first that can be shown.
  /// Valid while the container is open and its pictures are not dropped.
  var picture: UnsafeRawBufferPointer? {
    let shown = pictures.filter { picture in
      picture.bytes.count <= Picture.maximumByteCount && Picture.Kind(signature: picture.bytes) != nil
    }
    return (shown.first { $0.isFront } ?? shown.first)?.bytes
  }

  /// The first picture, also one that cannot be shown.
  var anyPicture: UnsafeRawBufferPointer? { pictures.first?.bytes }

  private var pictures: [(bytes: UnsafeRawBufferPointer, isFront: Bool)] {
    pictureStreams.compactMap { stream in
      let packet = stream.pointee.attached_pic
      guard packet.size > 0, let data = packet.data else { return nil }
      // Safe: libavformat says how many bytes there are, and keeps them while the container is open.
      return (
        UnsafeRawBufferPointer(start: data, count: Int(packet.size)),
        Self.text("comment", stream.pointee.metadata)?.lowercased() == "cover (front)"
      )
    }
  }

  private var pictureStreams: [UnsafeMutablePointer<AVStream>] {
    (0..<Int(context.pointee.nb_streams)).compactMap { context.pointee.streams[$0] }
      .filter { $0.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC != 0 }
  }

  /// Frees the pictures' bytes, which a producer would hold for as long as it runs, and has nobody look
  /// into them.
  func dropPictures() {
    for stream in pictureStreams {
      stream.pointee.discard = AVDISCARD_ALL
      av_packet_unref(&stream.pointee.attached_pic)
    }
  }
}
