import { urlAtHost } from '../http/targets.ts'

/** Where a service is on the public side. */
type Placed = {
  readonly hosts: readonly unknown[]
  readonly mount: string
  readonly address: { readonly publicRoot: string }
}

/** What stands in front of the targets of a service: its mount, with hosts behind the URL of the host. */
export const publicFront = (service: Placed | undefined, host: string): string => {
  if (service === undefined || service.hosts.length === 0) return service?.mount ?? ''
  return host === '' ? service.address.publicRoot : urlAtHost(service.address.publicRoot, host)
}
