import type { Peer } from '../peer.ts'
import { serveCommand } from '../serve-command.ts'
import { fileTargets, plainTargets } from './targets.ts'

/** @fastify/http-proxy alone. It has no cache: what is a hit or a miss elsewhere it fetches each time. */
export const bareHttpProxy: Peer = {
  name: 'http-proxy',
  title: 'bare @fastify/http-proxy',
  targets: {
    ...plainTargets,
    miss: fileTargets.miss,
    'miss-site': '/index.php/wp-json/site/v2/posts?per_page=8&offset=',
    mixed: fileTargets.mixed,
  },
  missing: () => undefined,
  command: async ({ port, originPort }) => serveCommand('http-proxy', port, String(originPort)),
  check: () => undefined,
}
