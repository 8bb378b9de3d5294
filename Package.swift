// swift-tools-version: 6.2
import PackageDescription

/// Applied to every target of ours: what compiles with a warning does not compile.
let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "antiphon",
  products: [
    .executable(name: "AudioEngine", targets: ["AudioEngine"]),
    .executable(name: "Router", targets: ["Router"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    // Without YAML and reloading: a setting is read once, at the start.
    .package(
      url: "https://github.com/apple/swift-configuration", from: "1.4.0",
      traits: ["JSON", "CommandLineArguments"]),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    // Without its Foundation trait: the engine hands it bytes.
    .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
    .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.0", traits: []),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.0"),
  ],
  targets: [
    // What crosses the socket between both processes; a change here is a change to both.
    .target(name: "WireProtocol", swiftSettings: strict),

    // What both processes need to be services: settings, logs, metrics, readiness, the system's clocks and signals.
    .target(
      name: "ServiceSupport",
      dependencies: [
        "NATS", "WireProtocol",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
      ],
      exclude: ["CLibraries"], swiftSettings: strict),

    // Limits on what a client may cost an HTTP server: connections and slowness, the same for both processes.
    .target(
      name: "HTTPLimits",
      dependencies: [
        "ServiceSupport", "WireProtocol",
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
      ],
      swiftSettings: strict),

    // Opus packets as an Ogg stream: what players take of the Router, and renderings of the engine.
    .target(
      name: "OggOpus",
      dependencies: ["COgg", "WireProtocol", .product(name: "NIOCore", package: "swift-nio")],
      exclude: ["CLibraries"], swiftSettings: strict),

    // A client of NATS, for more than one machine.
    .target(
      name: "NATS",
      dependencies: [
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      swiftSettings: strict),

    // C libraries, each seen by one wrapper file only.
    .systemLibrary(
      name: "CFFmpeg", path: "Sources/AudioEngine/CLibraries/CFFmpeg", pkgConfig: "libavformat",
      providers: [.apt(["libavformat-dev", "libavcodec-dev", "libavutil-dev", "libswresample-dev"])]
    ),
    .systemLibrary(
      name: "COpus", path: "Sources/AudioEngine/CLibraries/COpus", pkgConfig: "opus",
      providers: [.apt(["libopus-dev"])]
    ),
    .systemLibrary(name: "CLinux", path: "Sources/ServiceSupport/CLibraries/CLinux"),
    .systemLibrary(
      name: "CSeccomp", path: "Sources/AudioEngine/CLibraries/CSeccomp", pkgConfig: "libseccomp",
      providers: [.apt(["libseccomp-dev"])]
    ),
    .systemLibrary(
      name: "CZlib", path: "Sources/AudioEngine/CLibraries/CZlib", pkgConfig: "zlib",
      providers: [.apt(["zlib1g-dev"])]
    ),
    .systemLibrary(
      name: "COgg", path: "Sources/OggOpus/CLibraries/COgg", pkgConfig: "ogg",
      providers: [.apt(["libogg-dev"])]
    ),

    // AudioEngine produces and paces the audio.
    .target(
      name: "AudioEngineCore",
      dependencies: [
        "WireProtocol", "NATS", "ServiceSupport", "HTTPLimits", "OggOpus", "CFFmpeg", "COpus", "CLinux",
        "CSeccomp", "CZlib",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "Subprocess", package: "swift-subprocess"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "Sources/AudioEngine", exclude: ["Main", "CLibraries"],
      resources: [.copy("Extraction/extraction_worker.py")], swiftSettings: strict
    ),
    .executableTarget(
      name: "AudioEngine", dependencies: ["AudioEngineCore"],
      path: "Sources/AudioEngine/Main", swiftSettings: strict
    ),

    // Router serves the clients.
    .target(
      name: "RouterCore",
      dependencies: [
        "WireProtocol", "NATS", "ServiceSupport", "HTTPLimits", "OggOpus", "CLinux",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "Collections", package: "swift-collections"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "JWTKit", package: "jwt-kit"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      path: "Sources/Router", exclude: ["Main"],
      resources: [.copy("Playground/Resources"), .copy("API/openapi.yaml")], swiftSettings: strict
    ),
    .executableTarget(
      name: "Router", dependencies: ["RouterCore"],
      path: "Sources/Router/Main", swiftSettings: strict
    ),

    .testTarget(
      name: "WireProtocolTests", dependencies: ["WireProtocol"], swiftSettings: strict),
    .testTarget(
      name: "ServiceSupportTests", dependencies: ["ServiceSupport", "WireProtocol"], swiftSettings: strict),
    // What the fuzzer calls with bytes, and the tests with those that it found.
    .target(
      name: "FuzzTargets", dependencies: ["AudioEngineCore", "WireProtocol"], path: "Tests/Fuzz/Targets",
      swiftSettings: strict),
    .testTarget(
      name: "AudioEngineTests", dependencies: ["AudioEngineCore", "FuzzTargets"], swiftSettings: strict),
    .testTarget(
      name: "HTTPLimitsTests",
      dependencies: [
        "HTTPLimits", .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      swiftSettings: strict),
    // Real NATS servers, with folders and ports of their own, and ways to them that can be cut.
    .target(
      name: "NATSTestSupport",
      dependencies: [
        "NATS",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      path: "Tests/NATSTestSupport", swiftSettings: strict),
    .testTarget(
      name: "NATSTests",
      dependencies: [
        "NATS", "NATSTestSupport", "WireProtocol",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "RouterTests",
      dependencies: [
        "RouterCore", "NATS", "NATSTestSupport", "OggOpus", .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)

// Tests/Fuzz/run builds it, with libFuzzer.
if Context.environment["ANTIPHON_FUZZ"] != nil {
  package.targets.append(
    .executableTarget(
      name: "Fuzz", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Main", swiftSettings: strict))
}
