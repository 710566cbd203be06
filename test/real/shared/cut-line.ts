import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP line that a test can cut: broken off at once, or silent as behind a firewall that drops. */
export type CutLine = {
  readonly port: number
  /** Where new connections lead. */
  target: number
  state: 'whole' | 'broken' | 'silent'
  /** Says to all who are connected what the server did not. */
  interject(text: string): void
  close(): void
}

/** Carries connections on to a port of this machine. */
export const startCutLine = async (first: number): Promise<CutLine> => {
  let target = first
  const pairs = new Set<readonly [Socket, Socket]>()
  let state: CutLine['state'] = 'whole'
  const apply = (): void => {
    for (const [near, far] of pairs) {
      if (state === 'broken') {
        near.destroy()
        far.destroy()
      } else if (state === 'silent') {
        near.pause()
        far.pause()
      } else {
        near.resume()
        far.resume()
      }
    }
  }
  const server = createServer((near) => {
    if (state === 'broken') {
      near.destroy()
      return
    }
    const far = connect(target, '127.0.0.1')
    const pair = [near, far] as const
    pairs.add(pair)
    near.on('data', (chunk) => far.write(chunk))
    far.on('data', (chunk) => near.write(chunk))
    for (const [one, other] of [pair, [far, near] as const]) {
      one.on('error', () => undefined)
      one.on('close', () => {
        pairs.delete(pair)
        other.destroy()
      })
    }
    apply()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    interject: (text) => {
      for (const [near] of pairs) near.write(text)
    },
    get target() {
      return target
    },
    set target(next) {
      target = next
    },
    get state() {
      return state
    },
    set state(next) {
      state = next
      apply()
    },
    close: () => {
      server.close()
      state = 'broken'
      apply()
    },
  }
}
