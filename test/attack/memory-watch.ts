import { readFile, writeFile } from 'node:fs/promises'
import type { GatewayProcess } from '../support/gateway-process.ts'
import { programPid } from '../support/processes.ts'
import type { Memory } from './attack-row.ts'

const kibibytesInMebibyte = 1024
const bytesInMebibyte = 1024 * 1024

/** Reads the memory of a gateway and of its workers (Linux). */
export type MemoryWatch = {
  /** Takes the current resident memory as the value before the attack, and resets the peak. */
  begin(): Promise<void>
  read(): Promise<Memory>
  end(): void
}

const childrenOf = async (pid: number): Promise<readonly number[]> => {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

const processesOf = async (pid: number): Promise<readonly number[]> => {
  const inner = await Promise.all((await childrenOf(pid)).map(processesOf))
  return [pid, ...inner.flat()]
}

const kibibytes = async (pid: number, name: 'VmRSS' | 'VmHWM'): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
}

const sum = (values: readonly number[]): number => values.reduce((one, other) => one + other, 0)

export const watchMemory = async (gateway: GatewayProcess): Promise<MemoryWatch> => {
  const pid = await programPid(gateway.program)
  let beforeMiB = 0
  let cacheMiB = 0
  let peakKiB = 0

  const resident = async (name: 'VmRSS' | 'VmHWM'): Promise<number> =>
    sum(await Promise.all((await processesOf(pid)).map((one) => kibibytes(one, name))))

  const look = async (): Promise<void> => {
    peakKiB = Math.max(peakKiB, await resident('VmHWM'))
    const text = await fetch(`${gateway.adminOrigin}/metrics`, { signal: AbortSignal.timeout(2_000) })
      .then((response) => response.text())
      .catch(() => '')
    const bytes = [...text.matchAll(/^trellis_cache_bytes(?:\{[^}]*\})? (\S+)$/gm)].map(([, value]) =>
      Number(value),
    )
    cacheMiB = Math.max(cacheMiB, sum(bytes) / bytesInMebibyte)
  }
  const timer = setInterval(() => void look(), 2_000)
  // The first one compiles what makes the metrics.
  await look()
  return {
    begin: async () => {
      beforeMiB = (await resident('VmRSS')) / kibibytesInMebibyte
      // 5 sets VmHWM back to what is resident now (proc(5)).
      for (const one of await processesOf(pid))
        await writeFile(`/proc/${one}/clear_refs`, '5').catch(() => {})
      peakKiB = 0
    },
    read: async () => {
      await look()
      return { beforeMiB, peakMiB: peakKiB / kibibytesInMebibyte, cacheMiB }
    },
    end: () => clearInterval(timer),
  }
}
