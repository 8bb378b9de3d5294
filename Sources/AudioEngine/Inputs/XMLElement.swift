import WireProtocol

/// An element of an XML document and all that is in it, read without what such documents can do harm with: no document
/// type, no entities but the five, nothing from elsewhere.
package struct XMLElement: Equatable {
  private static let maximumDepth = 32
  private static let maximumElementCount = 50_000

  /// Without a prefix.
  package private(set) var name: String
  /// By their names as they stand there, with prefixes.
  package private(set) var attributes: [String: String]
  package private(set) var children: [XMLElement] = []
  private var characters: [UInt8] = []

  /// What is written in it, without space around it.
  package var text: String {
    var rest = characters.drop(while: XMLReader.isSpace)
    while let last = rest.last, XMLReader.isSpace(last) { rest.removeLast() }
    return String(decoding: rest, as: UTF8.self)
  }

  /// The children of one name.
  package func children(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

  package func child(_ name: String) -> XMLElement? { children.first { $0.name == name } }

  package subscript(_ attribute: String) -> String? { attributes[attribute] }

  /// The name of a document's root, found without reading all of it; nil for what is no XML.
  package static func rootName(of bytes: [UInt8]) -> String? {
    // A document type is seen by who reads on.
    let start = bytes.indices.dropLast().first {
      bytes[$0] == UInt8(ascii: "<") && XMLReader.isNameByte(bytes[$0 + 1])
    }
    return start.map { XMLReader.localName(bytes[($0 + 1)...].prefix(while: XMLReader.isNameByte)) }
  }

  /// Reads a document.
  ///
  /// - Throws: `source_corrupt`, naming what is wrong.
  package init(_ bytes: [UInt8]) throws(ErrorReport) {
    var reader = XMLReader(bytes)
    var open: [XMLElement] = []
    var count = 0
    while true {
      switch try reader.next() {
      case .characters(let characters):
        if !open.isEmpty { open[open.count - 1].characters += characters }
        continue
      case .start(let name, let attributes, let isEmpty):
        count += 1
        guard count <= Self.maximumElementCount, open.count < Self.maximumDepth else {
          throw XMLReader.broken("it has too many elements, or too many in one another")
        }
        open.append(XMLElement(name: name, attributes: attributes))
        guard isEmpty else { continue }
      case .end(let name):
        guard open.last?.name == name else { throw XMLReader.broken("\(name.quoted) ends and did not begin") }
      }
      let element = open.removeLast()
      guard !open.isEmpty else {
        self = element
        return
      }
      open[open.count - 1].children.append(element)
    }
  }

  private init(name: String, attributes: [String: String]) {
    self.name = name
    self.attributes = attributes
  }
}
