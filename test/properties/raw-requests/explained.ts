import type { Sighting } from './sightings.ts'

type Looked = {
  readonly gateway: readonly Sighting[]
  readonly plain: readonly Sighting[]
  readonly nginx: readonly Sighting[]
}

/** nginx ended the connection at a request that it does not take; what it saw, and what the gateway sent on, node:http saw too. */
const nginxStopped = ({ gateway, plain, nginx }: Looked): boolean =>
  [...nginx, ...gateway].every((sighting) => plain.includes(sighting)) && nginx.length < plain.length

const saysCloseInPart = (bytes: string): boolean =>
  [...bytes.matchAll(/^connection:([^\r\n]*)/gim)].some(([, value = '']) =>
    value.split(',').some((option) => /close/i.test(option) && !/^[\t ]*close[\t ]*$/i.test(option)),
  )

/** Differences that do not concern the end of a request, each with its reason. */
const reasons: readonly {
  readonly reason: string
  readonly holds: (bytes: string, looked: Looked) => boolean
}[] = [
  {
    reason:
      'RFC 9110 §5.6.3 has tabs around a value; nginx takes them for a part of it and refuses the request',
    holds: (bytes, looked) =>
      /^(?:transfer-encoding|content-length|host):[^\r\n]*\t/im.test(bytes) && nginxStopped(looked),
  },
  {
    reason:
      'an option is a whole member of the list (RFC 9110 §7.6.1); nginx closes wherever `close` stands in Connection',
    holds: (bytes, looked) => saysCloseInPart(bytes) && nginxStopped(looked),
  },
  {
    reason: 'RFC 3986 §3.2.2 lets a host have an underscore; nginx refuses one in the absolute form',
    holds: (bytes, looked) => / https?:\/\/[^/ ]*_[^/ ]*\/\S* HTTP/i.test(bytes) && nginxStopped(looked),
  },
  {
    reason: 'a list in two lines is one list (RFC 9110 §5.3); nginx refuses a second Expect',
    holds: (bytes, looked) => (bytes.match(/^expect:/gim)?.length ?? 0) > 1 && nginxStopped(looked),
  },
]

/** The reason for this one, if there is any. */
export const explanation = (bytes: string, looked: Looked): string | undefined =>
  reasons.find(({ holds }) => holds(bytes, looked))?.reason
