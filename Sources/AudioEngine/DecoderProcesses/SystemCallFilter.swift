import CSeccomp
import Glibc
import ServiceSupport
import WireProtocol

/// Which system calls a process may make (seccomp(2)). What no rule allows fails with `EPERM`; a call of another
/// architecture, whose numbers mean other things, ends the process. Owns libseccomp's context.
struct SystemCallFilter: ~Copyable {
  /// What an argument must be where a mask has a bit: it is compared as a number, and never followed to memory.
  struct Condition {
    var argument: UInt32
    var mask: UInt64
    var value: UInt64
  }

  // Safe: made in `init`, used only by the thread that owns this value, freed in `deinit`.
  private let context: scmp_filter_ctx

  init() throws(ErrorReport) {
    guard let context = seccomp_init(antiphon_seccomp_refuse(UInt16(EPERM))) else {
      throw ErrorReport(.internal, "libseccomp makes no filter")
    }
    // Where the kernel's word for it cannot be asked, libseccomp ends the thread alone.
    seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, antiphon_seccomp_kill)
    // The kernel's own errors, and not one that stands for all.
    seccomp_attr_set(context, SCMP_FLTATR_API_SYSRAWRC, 1)
    self.context = context
  }

  deinit { seccomp_release(context) }

  /// Allows a call where all conditions hold.
  mutating func allow(_ name: String, where conditions: [Condition] = []) throws(ErrorReport) {
    try add(antiphon_seccomp_allow, name, conditions)
  }

  /// Lets a call fail as on a kernel that does not have it.
  mutating func hide(_ name: String) throws(ErrorReport) {
    try add(antiphon_seccomp_refuse(UInt16(ENOSYS)), name, [])
  }

  /// Binds the calling thread, and those that it starts from now on, for good (seccomp_load(3)).
  consuming func load() throws(ErrorReport) { try Self.check(seccomp_load(context)) }

  /// A call's number on this machine; negative where it has none (seccomp_syscall_resolve_name(3)).
  static func number(of name: String) -> Int32 { seccomp_syscall_resolve_name(name) }

  private func add(_ action: UInt32, _ name: String, _ conditions: [Condition]) throws(ErrorReport) {
    let number = Self.number(of: name)
    // What this libseccomp does not know stays refused.
    guard number != __NR_SCMP_ERROR else { return }
    let comparisons = conditions.map {
      scmp_arg_cmp(arg: $0.argument, op: SCMP_CMP_MASKED_EQ, datum_a: $0.mask, datum_b: $0.value)
    }
    try Self.check(
      seccomp_rule_add_array(context, action, number, UInt32(comparisons.count), comparisons))
  }

  /// libseccomp returns errors negated.
  private static func check(_ status: Int32) throws(ErrorReport) {
    guard status == 0 else { throw ErrorReport(.internal, "libseccomp: \(errorText(-status))") }
  }
}
