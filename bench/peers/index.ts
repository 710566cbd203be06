import type { Peer } from '../peer.ts'
import { bareHttpProxy } from './http-proxy.ts'
import { nodeHttp } from './node-http.ts'
import { trellis } from './trellis.ts'

/** Trellis first: the answer that others serve from memory is taken from it. */
export const peers: readonly Peer[] = [trellis, nodeHttp, bareHttpProxy]

/** The peer that each scenario's ratio is taken against. */
export const yardsticks = { hit: nodeHttp.name, pass: bareHttpProxy.name } as const
