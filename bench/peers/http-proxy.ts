import type { Peer } from '../peer.ts'
import { serveCommand } from '../serve-command.ts'

/** @fastify/http-proxy alone: what Trellis passes through goes the same way, with more around it. */
export const bareHttpProxy: Peer = {
  name: 'http-proxy',
  title: 'bare @fastify/http-proxy',
  scenarios: ['pass'],
  missing: () => undefined,
  command: async ({ port, originPort }) => serveCommand('http-proxy', port, String(originPort)),
  target: () => '/plain/list',
  check: () => undefined,
}
