import { startTestGateway, type TestGateway } from './gateway.ts'
import { type Origin, type Script, startOrigin } from './origin.ts'

type HeaderValues = Readonly<Record<string, string>>

/** A gateway in front of a scripted origin, with a read that is stored: a write drops it, or it is left. */
export type StoredRead = {
  readonly origin: Origin
  readonly gateway: TestGateway
  /** The Cache-Status of a response. */
  statusOf(path: string, init?: RequestInit): Promise<string>
  post(path: string, body: string | Uint8Array<ArrayBuffer>, headers: HeaderValues): Promise<string>
  isStored(): Promise<boolean>
  /** Stores the read, unless it is stored. */
  store(): Promise<void>
  close(): Promise<void>
}

export const startStoredRead = async (
  path: string,
  script: Script,
  services: (origin: string) => object,
): Promise<StoredRead> => {
  const origin = await startOrigin(script)
  const gateway = await startTestGateway({ services: services(origin.origin) })
  const statusOf: StoredRead['statusOf'] = async (path, init = {}) => {
    const response = await fetch(gateway.publicAddress + path, init)
    await response.arrayBuffer()
    return response.headers.get('cache-status') ?? ''
  }
  const isStored = async (): Promise<boolean> => (await statusOf(path)).includes('; hit')
  return {
    origin,
    gateway,
    statusOf,
    post: (path, body, headers) => statusOf(path, { method: 'POST', headers: headers, body }),
    isStored,
    store: async () => {
      await isStored()
      if (!(await isStored())) throw new Error(`${path} is not stored`)
    },
    close: async () => {
      await gateway.close()
      await origin.close()
    },
  }
}
