import AudioEngineCore
import Testing

@Suite struct CPUBudgetTests {
  @Test(
    arguments: [
      (["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n"], 1.5),
      (["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"], nil),
      (
        [
          "/proc/self/cgroup": "0::/system.slice/antiphon-engine.service\n",
          "/sys/fs/cgroup/system.slice/antiphon-engine.service/cpu.max": "50000 100000\n",
        ], 0.5
      ),
      (
        [
          "/proc/self/cgroup": "0::/music.slice/antiphon-engine.service\n",
          "/sys/fs/cgroup/music.slice/antiphon-engine.service/cpu.max": "max 100000\n",
          "/sys/fs/cgroup/music.slice/cpu.max": "75000 100000\n",
        ], 0.75
      ),
      (
        [
          "/proc/self/cgroup": "4:cpu,cpuacct:/docker/0123\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        ], 3
      ),
      (
        ["/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"],
        nil
      ),
      (["/sys/fs/cgroup/cpu.max": "nonsense"], nil), ([:], nil),
    ] as [([String: String], Double?)])
  func `the quota of a control group is found`(files: [String: String], cores: Double?) {
    #expect(CPUBudget.quota { files[$0] } == cores)
  }

  @Test(
    arguments: [(8, nil, 8.0, 8), (8, 1.5, 1.5, 2), (2, 4, 2, 2), (4, 0.25, 0.25, 1)]
      as [(Int, Double?, Double, Int)])
  func `a quota is the budget where the machine has more`(
    online: Int, quota: Double?, cores: Double, threads: Int
  ) {
    let budget = CPUBudget(onlineCores: online, quota: quota)
    #expect(budget.cores == cores)
    #expect(budget.threadCount == threads)
  }
}
