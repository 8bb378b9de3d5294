extension SettingsInForce {
  /// The value of a single setting or a flag.
  func value(of name: String) -> String? {
    entries.first { $0.setting.name == name }?.values.first
  }

  /// For people: a line a setting with its value and where it comes from. Secrets are masked.
  public var table: String {
    let rows = [["SETTING", "VALUE", "FROM"]] + entries.map(Self.row)
    let widths = [0, 1].map { column in rows.map { $0[column].count }.max() ?? 0 }
    let lines = rows.map { row in
      zip(row, widths).map { text, width in text + String(repeating: " ", count: width - text.count) }
        .joined(separator: "  ") + "  " + row[2]
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func row(_ entry: Entry) -> [String] {
    let words =
      switch (entry.setting.isSecret, entry.setting.kind) {
      case _ where entry.values.isEmpty: "-"
      case (true, _): "********"
      case (false, .repeated): entry.values.joined(separator: ",")
      case (false, _): entry.values[0]
      }
    // What comes from outside stays on its line.
    return ["--\(entry.setting.name)", LogText.escaped(words), "\(entry.source)"]
  }
}
