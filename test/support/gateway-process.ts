import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { builtGateway } from './built-gateway.ts'
import { freePort } from './ports.ts'
import { programPid, type RunningProcess, startProcess, untilReady } from './processes.ts'

/** The gateway as its users start it: its own program with a config file. */
export type GatewayProcess = {
  readonly origin: string
  readonly adminOrigin: string
  readonly program: RunningProcess
  /** Writes the config file anew, and has it read (SIGHUP). */
  reload(settings: Record<string, unknown>): Promise<void>
  /** SIGTERM; returns the exit code. */
  stop(): Promise<number | string>
  /** SIGKILL, to all of its processes at once. */
  kill(): Promise<void>
}

/**
 * Starts the built gateway on free ports and waits for its /readyz. `settings` are added to the config file as they are; `flags`
 * are for Node and V8, of which NODE_OPTIONS takes only some; `ports` are needed where an upstream must know them first.
 */
export async function startGatewayProcess(
  settings: Record<string, unknown>,
  env: Record<string, string> = {},
  flags: readonly string[] = [],
  ports?: readonly [port: number, adminPort: number],
): Promise<GatewayProcess> {
  const main = await builtGateway()
  const [port, adminPort] = ports ?? [await freePort(), await freePort()]
  const origin = `http://127.0.0.1:${port}`
  const adminOrigin = `http://127.0.0.1:${adminPort}`
  const folder = await mkdtemp(join(tmpdir(), 'trellis-test-'))
  const file = join(folder, 'gateway.yaml')
  const configOf = (settings: Record<string, unknown>) => ({
    publicUrl: origin,
    log: { level: 'warn' },
    drain: { delay: '0s', timeout: '5s' },
    // A machine that is busy with other tests is no overload of the gateway under test.
    overload: { eventLoopDelay: '0s' },
    services: { plants: { contract: 'plants' }, site: { contract: 'site' } },
    ...settings,
    listen: { host: '127.0.0.1', port, ...(settings['listen'] as object | undefined) },
    admin: { host: '127.0.0.1', port: adminPort, ...(settings['admin'] as object | undefined) },
  })
  // JSON is YAML.
  const configure = (next: Record<string, unknown>): Promise<void> =>
    writeFile(file, JSON.stringify(configOf(next), null, 2))
  await configure(settings)
  // The first flag is that of the program's first line.
  const all = ['--no-allocation-site-pretenuring', ...flags]
  const program = startProcess(process.execPath, [...all, main, 'start', '-c', file], { env })
  const stop = async (): Promise<number | string> => {
    const end = await program.stop(10_000)
    await rm(folder, { recursive: true, force: true })
    return end
  }
  const reload = async (next: Record<string, unknown>): Promise<void> => {
    await configure(next)
    process.kill(await programPid(program), 'SIGHUP')
  }
  const kill = async (): Promise<void> => {
    process.kill(-program.pid, 'SIGKILL')
    await program.ended
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await untilReady(program, async () => {
      const response = await fetch(`${adminOrigin}/readyz`)
      if (!response.ok) throw new Error(`/readyz: ${response.status} ${await response.text()}`)
      await response.arrayBuffer()
    })
  } catch (error) {
    await stop()
    throw error
  }
  return { origin, adminOrigin, program, reload, stop, kill }
}
