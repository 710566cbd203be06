import type { Peer } from '../peer.ts'
import { serveCommand } from '../serve-command.ts'
import { fileTargets, plainTargets } from './targets.ts'

/**
 * A Fastify route that gives undici's events to the response and does nothing else: no header is removed or added, nothing is
 * checked, counted, timed or stored. What the parts of Trellis cost alone: the most that could be reached with them.
 */
export const bareDispatch: Peer = {
  name: 'dispatch',
  title: 'undici dispatch in a Fastify route',
  targets: { pass: plainTargets.pass, miss: fileTargets.miss },
  missing: () => undefined,
  command: async ({ port, originPort }) => serveCommand('dispatch', port, String(originPort)),
  check: () => undefined,
}
