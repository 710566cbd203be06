import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Peer } from '../peer.ts'
import type { Scenario } from '../scenarios.ts'
import { serveCommand } from '../serve-command.ts'
import { fileTargets } from './targets.ts'
import { trellis } from './trellis.ts'

const { miss: _miss, mixed: _mixed, ...held } = fileTargets

const serving = (name: string, title: string, targets: Peer['targets']): Peer => ({
  name,
  title,
  targets,
  missing: () => undefined,
  async command({ port, folder, answers: responses }) {
    const file = join(folder, 'answers.json')
    await writeFile(file, JSON.stringify(responses))
    return serveCommand(name, port, file)
  },
  check: () => undefined,
})

const asTrellis = (...names: readonly Scenario[]): Peer['targets'] =>
  Object.fromEntries(names.map((name) => [name, trellis.targets[name]]))

/** Bare node:http with the bytes of Trellis's responses in a Map: the floor under every hit path written on Node. */
export const nodeHttp = serving('node-http', 'bare node:http', {
  ...held,
  ...asTrellis('hit', 'not-modified', 'refusal', 'purge-storm'),
})

/** The same over TLS. */
export const nodeHttps = serving('node-https', 'bare node:https', asTrellis('hit-tls'))
export const nodeHttp2 = serving('node-http2', 'bare node:http2', asTrellis('hit-h2', 'not-modified-h2'))
