import { startTestGateway } from '../../support/gateway.ts'
import { startNginx } from '../../support/nginx.ts'
import { pause } from '../../support/origin.ts'
import { startRecorder } from '../../support/recorder.ts'
import { talk } from '../../support/talk.ts'
import { createConversations } from './conversations.ts'
import { startPlainServer } from './plain-server.ts'
import { createSightings, firstMissing, recordedResponse, type Sighting } from './sightings.ts'
import { variant } from './variants.ts'

/** What all three made of one variant. */
export type Looked = {
  /** What the gateway answered. */
  readonly said: Buffer
  readonly gateway: readonly Sighting[]
  readonly plain: readonly Sighting[]
  readonly nginx: readonly Sighting[]
}

/** The gateway, node:http and nginx, each with an upstream that notes what it sees. */
export type ThreeReaders = {
  look(seed: number): Promise<Looked>
  /** With patience: on a busy machine silence may mean that a reader is not finished. */
  lookAlone(seed: number): Promise<Looked>
  /** What the gateway sent on behind the end of its connection, or what bears the name of no variant. */
  takeLate(): { readonly seeds: readonly number[]; readonly strange: readonly Sighting[] }
  /** Bytes from the gateway that a strict upstream cannot read. */
  readonly faults: readonly string[]
  /** Status of a sound request. */
  soundStatus(): Promise<number>
  close(): Promise<void>
}

/** Starts all three. */
export const startThreeReaders = async (): Promise<ThreeReaders> => {
  const seen = { gateway: createSightings(), plain: createSightings(), nginx: createSightings() }
  const behindGateway = await startRecorder(recordedResponse(seen.gateway))
  const behindNginx = await startRecorder(recordedResponse(seen.nginx))
  const plain = await startPlainServer(seen.plain)
  const nginx = await startNginx(behindNginx.origin)
  // A queue at the upstream would be silence that means nothing.
  const upstream = { targets: [behindGateway.origin], maxConcurrent: 1024 }
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/open', upstream } },
  })
  const toGateway = createConversations({ address: gateway.publicAddress, atOnce: 24, silentLooks: 60 })
  // Another process needs more patience than what runs in this one.
  const toNginx = createConversations({ address: nginx.address, atOnce: 24, silentLooks: 200 })

  const begin = (name: string): void => {
    for (const sightings of Object.values(seen)) sightings.begin(name)
  }
  const taken = (name: string, said: Buffer): Looked => ({
    said,
    gateway: seen.gateway.take(name),
    plain: seen.plain.take(name),
    nginx: seen.nginx.take(name),
  })
  const bytesOf = (seed: number, look: 'a' | 'b'): Buffer => Buffer.from(variant(seed, look), 'latin1')

  return {
    faults: behindGateway.faults,
    // nginx is asked about what was sent on, and only until it has seen that: what else it sees is no disagreement.
    look: async (seed) => {
      const name = `i${seed}a`
      const bytes = bytesOf(seed, 'a')
      begin(name)
      const [said] = await Promise.all([toGateway.hold(bytes), plain.read(bytes)])
      const sent = seen.gateway.of(name)
      if (sent.length > 0) {
        await toNginx.hold(bytes, () => firstMissing(sent, seen.nginx.of(name)) === undefined)
      }
      return taken(name, said)
    },
    lookAlone: async (seed) => {
      const bytes = bytesOf(seed, 'b')
      begin(`i${seed}b`)
      const within = (address: string, silenceMs: number) => talk(address, bytes, { enough: '', silenceMs })
      const [said] = await Promise.all([
        within(gateway.publicAddress, 1_500),
        within(plain.address, 1_500),
        within(nginx.address, 4_500),
      ])
      await pause(300)
      return taken(`i${seed}b`, said.bytes)
    },
    takeLate: () => {
      const { variants, strange } = seen.gateway.takeLate()
      for (const other of [seen.plain, seen.nginx]) other.takeLate()
      for (const { requests } of [behindGateway, behindNginx]) requests.length = 0
      return { seeds: variants.map((name) => Number.parseInt(name.slice(1), 10)), strange }
    },
    soundStatus: async () => (await fetch(`${gateway.publicAddress}/open/i0-0`)).status,
    close: async () => {
      toGateway.close()
      toNginx.close()
      await gateway.close()
      await nginx.stop()
      await plain.close()
      await behindGateway.close()
      await behindNginx.close()
    },
  }
}
