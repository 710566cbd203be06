import type { Peer } from '../peer.ts'
import { bareDispatch } from './bare-dispatch.ts'
import { haproxy, nginx, varnish } from './debian.ts'
import { bareHttpProxy } from './http-proxy.ts'
import { nodeHttp, nodeHttp2, nodeHttps } from './node-http.ts'
import { trellis } from './trellis.ts'

/** Trellis first: the responses that others serve from memory are taken from it. */
export const peers: readonly Peer[] = [
  trellis,
  nodeHttp,
  nodeHttps,
  nodeHttp2,
  bareHttpProxy,
  bareDispatch,
  nginx,
  varnish,
  haproxy,
]
