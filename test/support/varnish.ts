import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'
import { startProcess, untilReady } from './processes.ts'

/** A real Varnish with the module xkey. */
export type Varnish = {
  readonly address: string
  /** Kills it and starts it again: what it had stored is gone. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** The configuration that docs/cdn.md shows. `change`: for a Varnish that knows nothing of Trellis. */
const shownVcl = async (backendPort: number): Promise<string> => {
  const page = await readFile('docs/cdn.md', 'utf8')
  const vcl = /```vcl\n([\s\S]*?)```/.exec(page)?.[1]
  if (vcl === undefined) throw new Error('docs/cdn.md shows no VCL')
  return vcl.replace('.port = "8080"', `.port = "${backendPort}"`)
}

/** Without a word of Trellis, with a lifetime for all. */
const plainVcl = (backendPort: number, keptFor: string): string => `
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "${backendPort}"; }
sub vcl_backend_response { set beresp.ttl = ${keptFor}; set beresp.grace = 0s; return (deliver); }
`

/** Starts one in front of a port; with `keptFor` it keeps everything for that long, without purges. */
export const startVarnish = async (backendPort: number, keptFor?: string): Promise<Varnish> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-varnish-'))
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const file = join(folder, 'default.vcl')
  await writeFile(file, keptFor === undefined ? await shownVcl(backendPort) : plainVcl(backendPort, keptFor))
  const start = async () => {
    const program = startProcess(
      'varnishd',
      [
        ...['-F', '-j', 'none', '-a', `127.0.0.1:${port}`, '-f', file, '-s', 'malloc,64m', '-T', 'none'],
        ...['-n', join(folder, 'state'), '-p', 'thread_pools=1', '-p', 'thread_pool_min=10'],
      ],
      { env: { PATH: `${process.env['PATH']}:/usr/sbin` } },
    )
    await untilReady(program, () => fetch(address))
    return program
  }
  let program = await start()
  return {
    address,
    restart: async () => {
      await program.stop()
      program = await start()
    },
    close: async () => {
      await program.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
