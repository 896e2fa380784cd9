--- `:checkhealth pillion`

local M = {}

local levels = { ready = 'ok', stopped = 'ok', disabled = 'info', connecting = 'info', error = 'error' }

local function servers(client)
  local answer = client:request_sync('mcp.status', { directory = vim.fn.getcwd() }, 2000, 0)
  if not answer or answer.err then
    return vim.health.error('The sidecar does not answer `mcp.status`')
  end
  for _, file in ipairs(answer.result.files) do
    if file.fault then
      vim.health.error(('%s: %s'):format(file.path, file.fault.message), file.fault.hint)
    elseif file.exists then
      vim.health.ok(file.path)
    end
  end
  for _, record in ipairs(answer.result.servers) do
    local fault = record.error
    local text = ('%s is %s%s'):format(record.name, record.state, fault and ': ' .. fault.message or '')
    vim.health[levels[record.state] or 'warn'](text, fault and fault.hint)
  end
end

function M.check()
  vim.health.start('pillion')
  if vim.fn.has('nvim-0.11') == 0 then
    return vim.health.error('Neovim 0.11 or newer is needed')
  end
  local module = require('pillion.client')
  local program = module.options.cmd[1]
  if vim.fn.executable(program) == 0 then
    return vim.health.error(('`%s` cannot be run'):format(program), {
      'Install it: `cargo install --path crates/pillion`',
      'Or say where it is: `require("pillion").setup({ cmd = { "/path/to/pillion", "serve" } })`',
    })
  end
  local version = vim.system({ program, '--version' }, { text = true }):wait(5000)
  vim.health.ok(('%s, %s'):format(vim.fn.exepath(program), vim.trim(version.stdout or '')))
  local client = module.running()
  if not client then
    return vim.health.info('The sidecar is not running; it starts with the first `:Pillion` command')
  end
  local mcp = vim.tbl_get(client.server_capabilities, 'experimental', 'mcp') or {}
  vim.health.ok(
    ('The sidecar runs, protocol %s, MCP %s'):format(
      mcp.protocolVersion or '?',
      table.concat(mcp.mcpRevisions or {}, ', ')
    )
  )
  servers(client)
end

return M
