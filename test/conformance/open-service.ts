import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

/** A gateway with one open service at the root, in front of a scripted origin. */
export type OpenService = {
  readonly origin: Origin
  readonly gateway: TestGateway
  /** Sends a request of these lines, and what follows the empty line; gives back all that came. */
  ask(lines: readonly string[], content?: string): Promise<string>
  close(): Promise<void>
}

export const startOpenService = async (script?: Script): Promise<OpenService> => {
  const origin = await startOrigin(script)
  const gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
  return {
    origin,
    gateway,
    ask: ([first = '', ...lines], content = '') =>
      exchangeBytes(
        gateway.publicAddress,
        [first, 'Host: gateway', 'Connection: close', ...lines, '', content].join('\r\n'),
      ),
    close: async () => {
      await gateway.close()
      await origin.close()
    },
  }
}

/** Status line and headers, without Date. */
const headOf = (reply: string): string => reply.slice(0, reply.indexOf('\r\n\r\n'))

/** A header of a reply that holds one response. */
export const headerOf = (reply: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, 'im').exec(headOf(reply))?.[1]?.trim()
