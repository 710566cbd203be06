import { type AttackRow, type Fault, faultsOf, row, type Seen, type Tree } from '../attack-row.ts'
import { ask, attacker, attackers, flood } from '../clients.ts'
import {
  askSlowly,
  leaveUnread,
  resetStreams,
  type Tally,
  trickleStreams,
  trickleUploads,
} from '../holding.ts'
import type { Scene } from '../scene.ts'
import { openReads, openService, site, siteReads, siteService, withTls } from '../services.ts'

// Clients that hold the requests to the upstream which all callers share.

const plain = ({ upstream }: Pick<Scene, 'upstream'>): Tree => ({ services: { open: openService(upstream) } })
const ofSite = ({ upstream }: Pick<Scene, 'upstream'>): Tree => ({
  services: { site: siteService(upstream) },
})
const overTls = async (scene: Pick<Scene, 'upstream'>): Promise<Tree> => ({
  ...plain(scene),
  listen: await withTls(),
})
const twoWorkers = (scene: Pick<Scene, 'upstream'>): Tree => ({ ...plain(scene), workers: 2 })

type Starving = Pick<AttackRow<Tally>, 'name' | 'description' | 'settings' | 'attack'> &
  Partial<Pick<AttackRow<Tally>, 'reads'>>

const starving = (attack: Starving): AttackRow => row<Tally>({ ...attack, verdict: () => [] })

/** Connections are ended, and new ones of their addresses refused. */
const wereRefused = ({ found: { refused = 0 } }: Seen<Tally>): readonly Fault[] =>
  faultsOf(refused > 0 ? [] : ['no connection of an address that resets its streams was refused'])
const resetting = (attack: Starving): AttackRow => row<Tally>({ ...attack, verdict: wereRefused })

const openUpload = { path: '/open/up', type: 'application/octet-stream' }
const mediaUpload = { path: `${site}/wp/v2/media`, type: 'image/png' }
const publicMediaUpload = { path: `${site}/site/v2/media`, type: 'image/png' }

const trickling = (sockets: number, from: number, upload: typeof openUpload) =>
  ((scene, signal) =>
    trickleUploads(scene, signal, {
      ...upload,
      sockets,
      addresses: attackers(from),
    })) satisfies AttackRow<Tally>['attack']

const huge = 'GET /open/huge HTTP/1.1\r\nHost: a\r\n\r\n'
const group = '2001:db8:0:1'

/** 1,000 addresses of one /64, said by a proxy that is trusted. */
const ofOneNetwork = (number: number): string =>
  `X-Forwarded-For: ${group}::${(number % 1_000).toString(16)}\r\n`

export const starvingRows: readonly AttackRow[] = [
  starving({
    name: 'uploads-64',
    description: '64 uploads of one address trickle to an open service.',
    settings: plain,
    attack: trickling(64, 1, openUpload),
  }),
  starving({
    name: 'uploads-1000',
    description: '1,000 uploads of one address trickle to an open service.',
    settings: plain,
    attack: trickling(1_000, 1, openUpload),
  }),
  starving({
    name: 'uploads-1000-from-20',
    description: '1,000 uploads of 20 addresses trickle to an open service.',
    settings: plain,
    attack: trickling(1_000, 20, openUpload),
  }),
  starving({
    name: 'media-64',
    description: '64 uploads without a credential trickle to the media of a site.',
    settings: ofSite,
    reads: siteReads,
    attack: trickling(64, 1, publicMediaUpload),
  }),
  starving({
    name: 'media-64-unlisted',
    description: '64 uploads trickle to a route that the contract does not list, under its WordPress name.',
    settings: ({ upstream }) => ({ services: { site: siteService(upstream, { unlistedRoutes: 'pass' }) } }),
    reads: siteReads,
    attack: trickling(64, 1, mediaUpload),
  }),
  starving({
    name: 'media-1000-from-20',
    description: '1,000 uploads of 20 addresses trickle to the media of a site.',
    settings: ofSite,
    reads: siteReads,
    attack: trickling(1_000, 20, publicMediaUpload),
  }),
  starving({
    name: 'unread-64',
    description: '64 answers of 80 MB that are not stored are not read.',
    settings: plain,
    attack: (scene, signal) =>
      leaveUnread(scene, signal, { sockets: 64, addresses: [attacker], bytes: huge }),
  }),
  starving({
    name: 'unread-64-tls',
    description: 'The same over TLS.',
    settings: overTls,
    attack: (scene, signal) =>
      leaveUnread(scene, signal, { sockets: 64, addresses: [attacker], bytes: huge }),
  }),
  starving({
    name: 'unread-100-from-20',
    description: '100 answers of 80 MB are not read by 20 addresses.',
    settings: plain,
    attack: (scene, signal) =>
      leaveUnread(scene, signal, { sockets: 100, addresses: attackers(20), bytes: huge }),
  }),
  starving({
    name: 'streams-100',
    description: 'One HTTP/2 connection has 100 streams whose uploads trickle.',
    settings: overTls,
    attack: (scene, signal) =>
      trickleStreams(scene, signal, { streams: 100, addresses: [attacker], path: '/open/up' }),
  }),
  starving({
    name: 'streams-100-from-20',
    description: '20 addresses have an HTTP/2 connection each with 100 streams whose uploads trickle.',
    settings: overTls,
    attack: (scene, signal) =>
      trickleStreams(scene, signal, { streams: 100, addresses: attackers(20), path: '/open/up' }),
  }),
  starving({
    name: 'slow-upstream-100',
    description: '100 connections of one address ask for what takes the upstream three seconds.',
    settings: plain,
    attack: (scene, signal) =>
      askSlowly(scene, signal, { sockets: 100, addresses: [attacker], path: '/open/slow' }),
  }),
  starving({
    name: 'slow-upstream-100-from-20',
    description: '100 connections of 20 addresses ask for what takes the upstream three seconds.',
    settings: plain,
    attack: (scene, signal) =>
      askSlowly(scene, signal, { sockets: 100, addresses: attackers(20), path: '/open/slow' }),
  }),
  starving({
    name: 'busy-connections-1000',
    description:
      '1,000 connections of one address ask for a stored response again and again, and 100 new ones a second ask once.',
    settings: plain,
    attack: async (scene, signal) => {
      const newConnection = setInterval(
        () => void ask(scene.origin, openReads.hit, { from: attackers(2)[1] as string }),
        10,
      )
      const statuses = await flood(scene, signal, {
        connections: 1_000,
        addresses: [attacker],
        max: Number.POSITIVE_INFINITY,
        head: () => `GET ${openReads.hit} HTTP/1.1`,
      })
      clearInterval(newConnection)
      return statuses
    },
  }),
  resetting({
    name: 'rapid-reset',
    description: 'Four HTTP/2 connections begin and reset streams as fast as they can.',
    settings: overTls,
    attack: (scene, signal) => resetStreams(scene, signal, { connections: 4, path: '/open/slow' }),
  }),
  resetting({
    name: 'rapid-reset-from-20',
    description: '20 HTTP/2 connections of 20 addresses begin and reset streams as fast as they can.',
    settings: overTls,
    attack: (scene, signal) =>
      resetStreams(scene, signal, {
        connections: 20,
        addresses: attackers(20),
        path: '/open/slow',
      }),
  }),
  starving({
    name: 'uploads-200-workers',
    description: '200 uploads of one address trickle to two workers.',
    settings: twoWorkers,
    attack: trickling(200, 1, openUpload),
  }),
  starving({
    name: 'slow-upstream-200-workers',
    description: '200 connections of one address ask two workers for what takes the upstream three seconds.',
    settings: twoWorkers,
    attack: (scene, signal) =>
      askSlowly(scene, signal, { sockets: 200, addresses: [attacker], path: '/open/slow' }),
  }),
  starving({
    name: 'uploads-of-one-network',
    description: '1,000 uploads trickle that a trusted proxy says come from 1,000 addresses of one IPv6 /64.',
    settings: (scene) => ({ ...plain(scene), trustedProxies: ['127.0.0.2/32'] }),
    attack: (scene, signal) =>
      trickleUploads(scene, signal, {
        ...openUpload,
        sockets: 1_000,
        addresses: [attacker],
        headers: ofOneNetwork,
      }),
  }),
]
