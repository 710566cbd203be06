import { join } from 'node:path'
import { startStack } from '../../../bench/batch-stack.ts'
import { startIntake, token } from '../companion/intake.ts'
import { type CompanionSite, siteOfStack } from '../companion/site.ts'
import { patientPushes } from '../wordpress/copy-companion.ts'
import type { Credential, Role } from '../wordpress/start-wordpress.ts'
import { copyPlugins, type TestPlugin } from '../wordpress/start-wordpress.ts'
import type { Core, PluginName } from './archives.ts'
import { buildRealSite } from './build-real-site.ts'

type RealSiteOptions = {
  readonly core?: Core
  readonly plugins: readonly PluginName[]
  readonly withCompanion: boolean
  /** Admin addresses of the gateways that the companion reports to. */
  readonly gateways?: readonly string[]
  /** Must-use plugins of the tests. */
  readonly testPlugins?: readonly TestPlugin[]
  /** In `production` plugins do what they do for visitors: Yoast stores its index only there. */
  readonly environment?: 'production' | 'local'
  /** The address in links; its own if there is none. */
  readonly publicUrl?: string
}

/** A copy of a real WordPress with real plugins, as `CompanionSite` has it also where it has no companion. */
export type RealSite = CompanionSite & {
  readonly credentials: Readonly<Record<Role, Credential>>
  /** Of the database. */
  readonly socket: string
}

/** Starts a copy of a real site on nginx, php-fpm and MariaDB. Its cron runs only when a test asks for it. */
export const startRealSite = async (options: RealSiteOptions): Promise<RealSite> => {
  const { core = '7.1', plugins, withCompanion, gateways = [], testPlugins = [] } = options
  const built = await buildRealSite(core, plugins)
  const intake = await startIntake()
  const companion = {
    ...patientPushes,
    TRELLIS_TOKEN: withCompanion ? token : '',
    TRELLIS_GATEWAYS: [intake.origin, ...gateways].join(','),
  }
  const environment = { WP_ENVIRONMENT_TYPE: options.environment ?? 'production' }
  const { publicUrl } = options
  try {
    const stack = await startStack({
      ...{ flush: 2, opcache: true, built, environment },
      ...(withCompanion ? { companion } : {}),
      ...(publicUrl === undefined ? {} : { publicUrl }),
    })
    const mustUse: readonly TestPlugin[] = ['plain-http-passwords', 'promise-fuzz', ...testPlugins]
    await copyPlugins(mustUse, join(stack.site, 'wp-content/mu-plugins'))
    const site = siteOfStack(intake, { ...environment, ...companion }, stack, publicUrl)
    return { ...site, credentials: stack.credentials, socket: stack.socket }
  } catch (error) {
    await intake.close()
    throw error
  }
}
