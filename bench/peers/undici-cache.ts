import type { Peer } from '../peer.ts'
import { serveCommand } from '../serve-command.ts'
import { fileTargets, plainTargets } from './targets.ts'

const { 'hit-192k-gzip': _gzip, 'not-modified': _conditional, zipf: _zipf, ...targets } = fileTargets

/** @fastify/http-proxy over a dispatcher with undici's own cache interceptor: what needs three lines of Node. */
export const undiciCache: Peer = {
  name: 'undici-cache',
  title: '@fastify/http-proxy + undici cache',
  targets: { ...targets, pass: plainTargets.pass },
  missing: () => undefined,
  command: async ({ port, originPort }) => serveCommand('undici-cache', port, String(originPort)),
  check: () => undefined,
}
