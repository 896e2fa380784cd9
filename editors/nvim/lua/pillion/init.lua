--- What a person and other plugins use: `:Pillion` and the functions below.
--- Everything is a view over the protocol; the sidecar holds all state.

local client = require('pillion.client')
local ui = require('pillion.ui')

local M = {}

--- Optional: changes where the sidecar is, `{ cmd = { '/path/to/pillion', 'serve' } }`.
---@param options? { cmd?: string[] }
function M.setup(options)
  vim.validate('options', options, 'table', true)
  client.options = vim.tbl_extend('force', client.options, options or {})
end

--- Calls a tool and hands over the server's own result; questions are asked meanwhile.
---@param server string
---@param tool string
---@param arguments? table
---@param done fun(result?: table, problem?: string)
function M.call(server, tool, arguments, done)
  local params = client.at(server, { name = tool, arguments = arguments or vim.empty_dict() })
  params.workDoneToken = client.token() -- progress shows wherever the user shows LSP progress
  client.request('mcp.tool.call', params, function(answer, problem)
    done(answer and answer.result, problem)
  end)
end

--- The tools of one server, or of all.
---@param server? string
---@param done fun(tools: table[])
function M.tools(server, done)
  client.pages('mcp.tools.list', client.at(server, {}), done)
end

--- For a statusline: `mcp 2/3` servers ready, and a `?` while a question waits. Empty before the first use.
---@return string
function M.status()
  local ready, all = 0, 0
  for _, record in pairs(client.servers) do
    all = all + 1
    ready = ready + (record.state == 'ready' and 1 or 0)
  end
  local waits = #client.questions > 0 and ' ?' or ''
  return all == 0 and '' or ('mcp %d/%d%s'):format(ready, all, waits)
end

--- Picks a tool if none is named, asks for its arguments if none are given, shows the result.
local function call(server, tool, text)
  if not tool then
    return M.tools(server, function(tools)
      local label = function(item)
        return item.name .. (item.title and ' - ' .. item.title or '')
      end
      vim.ui.select(tools, { prompt = 'Tool of ' .. server, format_item = label }, function(item)
        if item then
          ui.arguments(item, function(arguments)
            M.call(server, item.name, arguments, ui.result)
          end)
        end
      end)
    end)
  end
  local fine, arguments = pcall(vim.json.decode, text ~= '' and text or '{}')
  if not fine or type(arguments) ~= 'table' then
    return client.notify('The arguments are not a JSON object: ' .. text, vim.log.levels.ERROR)
  end
  M.call(server, tool, next(arguments) and arguments, ui.result)
end

local function act(method)
  return function(server)
    client.request(method, client.at(server, {}), function(answer, problem)
      if answer then
        local record = answer.server
        local fault = record.error and ': ' .. record.error.message or ''
        client.notify(('%s is %s%s'):format(server, record.state, fault))
      else
        client.notify(problem, vim.log.levels.ERROR)
      end
    end)
  end
end

local commands = {
  list = function()
    ui.list(M)
  end,
  start = act('mcp.start'),
  stop = act('mcp.stop'),
  restart = act('mcp.restart'),
  call = function(server, tool, ...)
    call(server, tool, table.concat({ ... }, ' '))
  end,
  log = ui.log,
  quit = client.stop,
}

--- `:Pillion [list|quit]`, `:Pillion start|stop|restart|log SERVER`, `:Pillion call SERVER [TOOL [JSON]]`
---@param words string[]
function M.command(words)
  local name = words[1] or 'list'
  if not commands[name] then
    return client.notify(
      ('`%s` is not one of %s'):format(name, M.complete('', 'Pillion ')),
      vim.log.levels.ERROR
    )
  end
  if not words[2] and name ~= 'list' and name ~= 'quit' then
    return client.notify(('Which server? `:Pillion %s SERVER`'):format(name), vim.log.levels.ERROR)
  end
  commands[name](unpack(words, 2))
end

--- Subcommands, then the servers known so far.
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line, '%s+')
  local names = vim.tbl_keys(#words <= 2 and commands or #words == 3 and client.servers or {})
  table.sort(names)
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names)
end

return M
