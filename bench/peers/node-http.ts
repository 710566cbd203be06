import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Peer } from '../peer.ts'
import { serveCommand } from '../serve-command.ts'
import { fileTargets } from './targets.ts'
import { trellis } from './trellis.ts'

const { miss: _miss, mixed: _mixed, ...held } = fileTargets

/** Bare node:http with the bytes of Trellis's answers in a Map: the floor under every hit path written on Node. */
export const nodeHttp: Peer = {
  name: 'node-http',
  title: 'bare node:http',
  targets: {
    ...held,
    hit: trellis.targets.hit ?? '',
    'not-modified': trellis.targets['not-modified'] ?? '',
    refusal: trellis.targets.refusal ?? '',
    'purge-storm': trellis.targets['purge-storm'] ?? '',
  },
  missing: () => undefined,
  async command({ port, folder, answers }) {
    const file = join(folder, 'answers.json')
    await writeFile(file, JSON.stringify(answers))
    return serveCommand('node-http', port, file)
  },
  check: () => undefined,
}
