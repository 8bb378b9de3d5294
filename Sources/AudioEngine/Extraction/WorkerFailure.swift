import WireProtocol

extension WorkerAnswer.Failure {
  /// The same in the engine's words, with what helps.
  var report: ErrorReport {
    ErrorReport(code, "yt-dlp: \(message)", hint: hint, stage: .extract)
  }

  private var code: ErrorCode {
    switch kind {
    case "unsupported": .sourceNotAudio
    case "forbidden": .sourceForbidden
    case "too_large": .sourceTooLarge
    case "sign_in": .sourceNeedsSignIn
    case "age": .sourceAgeRestricted
    case "private": .sourcePrivate
    case "geo": .sourceGeoBlocked
    case "rate": .sourceRateLimited
    default: .extractionFailed
    }
  }

  private var hint: String {
    switch kind {
    case "unsupported": "give a page that holds audio, or the address of the file itself"
    case "forbidden": "an operator can allow a network with --allow-network"
    case "too_large": "give the address of the file itself"
    case "sign_in": "an operator can give the cookies of a signed-in browser with --yt-dlp-cookies"
    case "age": "an operator can give the cookies of a grown-up's account with --yt-dlp-cookies"
    case "private": "an operator can give the cookies of an account that may play it with --yt-dlp-cookies"
    case "geo": "an operator can have it fetched from another country with --yt-dlp-proxy"
    case "rate": "try again in an hour; an operator can use another address with --yt-dlp-proxy"
    case "proxy": "an operator has to look at --yt-dlp-proxy"
    default: "try again; where it worked before, run deploy/upgrade-yt-dlp"
    }
  }
}
