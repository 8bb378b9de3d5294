import Logging
import NIOPosix

extension SourceOpener {
  package init(
    _ configuration: AudioEngineConfiguration, mediaRoot: MediaRoot?, extractor: Extractor,
    decoders: DecoderPool
  ) {
    let web = WebAccess(
      policy: AddressPolicy(allowed: configuration.allowedNetworks),
      timeoutSeconds: configuration.sourceTimeoutSeconds, byteLimit: configuration.maximumSourceByteCount,
      bytesPerSecond: configuration.maximumSourceBytesPerSecond,
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      authorities: configuration.authorities?.certificates ?? [], proxy: configuration.extractorProxy)
    self.init(mediaRoot: mediaRoot, web: web, extractor: extractor, decoders: decoders)
  }
}

extension Extractor {
  package convenience init(_ configuration: AudioEngineConfiguration, logger: Logger) {
    let settings = WorkerSettings(
      allowed: configuration.allowedNetworks.map(\.description), refused: AddressPolicy.refusedNetworks,
      searchPrefix: configuration.searchPrefix, pluginFolders: configuration.extractorPluginFolders,
      cookies: configuration.extractorCookies, proxyURL: configuration.extractorProxy?.url,
      extractorArguments: configuration.extractorArguments, authorities: configuration.authorities?.text,
      socketTimeoutSeconds: configuration.sourceTimeoutSeconds,
      memoryByteLimit: configuration.extraction.memoryByteLimit)
    let program = ExtractionProgram(
      pythonPath: configuration.extractorPythonPath, scriptPath: AudioEngineConfiguration.workerScriptPath)
    self.init(
      pool: ExtractionPool(
        program: program, settings: settings, limits: configuration.extraction, logger: logger))
  }
}
