import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Peer } from '../peer.ts'
import { serveCommand } from '../serve-command.ts'
import { trellis } from './trellis.ts'

/** Bare node:http with the bytes of a Trellis hit in a Map: the floor under every hit path written on Node. */
export const nodeHttp: Peer = {
  name: 'node-http',
  title: 'bare node:http',
  scenarios: ['hit'],
  missing: () => undefined,
  async command({ port, folder, answer }) {
    const file = join(folder, 'answer.json')
    await writeFile(file, JSON.stringify({ ...answer, target: trellis.target('hit') }))
    return serveCommand('node-http', port, file)
  },
  target: (scenario) => trellis.target(scenario),
  check: () => undefined,
}
