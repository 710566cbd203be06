import dns from 'node:dns/promises'
import { syncBuiltinESMExports } from 'node:module'

const original = dns.lookup
/** Those that tests have made up. */
const names = new Map<string, LocalName>()

const lookup = async (name: string, options?: unknown): Promise<unknown> => {
  const addresses = await names.get(name)?.lookUp()
  if (addresses === undefined) return (original as (...args: unknown[]) => Promise<unknown>)(name, options)
  const found = addresses.map((address) => ({ address, family: 4 }))
  if (found.length === 0)
    throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' })
  return found
}

/** A name that resolves, in this process, to the addresses that the test lists at that moment; none: the name is unknown. */
export class LocalName {
  readonly hostname: string
  addresses: readonly string[] = []
  /** Lookups so far. */
  lookups = 0
  #released: Promise<void> = Promise.resolve()

  constructor(hostname: string) {
    this.hostname = hostname
    names.set(hostname, this)
    dns.lookup = lookup as typeof dns.lookup
    syncBuiltinESMExports()
  }

  /** Lookups from now on end when the returned function is called. */
  hang(): () => void {
    let release = (): void => {}
    this.#released = new Promise((resolve) => {
      release = resolve
    })
    return release
  }

  async lookUp(): Promise<readonly string[]> {
    this.lookups += 1
    await this.#released
    return this.addresses
  }

  /** The system resolves names again, once no made-up one is left. */
  remove(): void {
    names.delete(this.hostname)
    if (names.size > 0) return
    dns.lookup = original
    syncBuiltinESMExports()
  }
}
