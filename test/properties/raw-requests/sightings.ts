import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { WireMessage } from '../../support/read-messages.ts'

/** Requests as somebody saw them: method, number of the variant and of the request in it, content. */
export type Sighting = string

const named = /\/(i\d+[ab])-(\w*)/

const sightingOf = (
  method: string,
  target: string,
  content: string,
): readonly [variant: string, Sighting] => {
  const [, variant = 'none', part = ''] = named.exec(target) ?? []
  return [variant, `${method} ${part} ${JSON.stringify(content)}`]
}

/** What was seen of each variant until somebody takes it. */
export type Sightings = {
  note(method: string, target: string, content: string): void
  take(variant: string): readonly Sighting[]
  /** Of which something has not been taken. */
  variants(): Iterable<string>
  clear(): void
}

export const createSightings = (): Sightings => {
  const seen = new Map<string, Sighting[]>()
  return {
    note: (method, target, content) => {
      const [variant, sighting] = sightingOf(method, target, content)
      const known = seen.get(variant)
      if (known === undefined) seen.set(variant, [sighting])
      else known.push(sighting)
    },
    take: (variant) => {
      const taken = seen.get(variant) ?? []
      seen.delete(variant)
      return taken
    },
    variants: () => seen.keys(),
    clear: () => seen.clear(),
  }
}

/** Notes what a recorder gets, and answers shortly. */
export const notedAnswer =
  ({ note }: Sightings) =>
  ({ startLine, content }: WireMessage): string => {
    const [method = '', target = ''] = startLine.split(' ')
    note(method, target, content.toString('latin1'))
    return 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  }

/** node:http as it comes, noting the requests that it reads to their end. */
export const startPlainServer = async (
  sightings: Sightings,
): Promise<{ address: string; close(): Promise<void> }> => {
  const take = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('error', () => {})
    incoming.on('end', () => {
      sightings.note(incoming.method ?? '', incoming.url ?? '', Buffer.concat(chunks).toString('latin1'))
      outgoing.end('ok')
    })
  }
  const server = createServer(take)
  // An expectation that it does not know it answers without showing the request to anybody.
  server.on('checkExpectation', take)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
