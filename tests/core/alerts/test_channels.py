"""Who is told where a spec does not say."""

import pytest

from tidegate.core.alerts.channels import choose_channels, read_channels
from tidegate.core.errors import SettingsError
from tidegate.core.spec.alerts import Alerts


def test_channels_are_read_from_the_environment():
    given = "[{type: smtp, to: [ops@example.com]}, {type: slack, channel: '#ops'}]"
    mail, slack = read_channels({"TIDEGATE_NOTIFY": given})
    assert (mail.label, slack.label) == ("smtp ops@example.com", "slack slack_api_default #ops")


@pytest.mark.parametrize("environment", [{}, {"TIDEGATE_NOTIFY": ""}])
def test_nobody_is_told_unless_somebody_is_named(environment):
    assert read_channels(environment) == ()


@pytest.mark.parametrize("given", ["ops@example.com", "[{type: fax}]", "[{", "{type: smtp}"])
def test_what_cannot_be_read_is_told_with_an_example(given):
    with pytest.raises(SettingsError, match=r"alerts\.notify of a spec, such as TIDEGATE_NOTIFY="):
        read_channels({"TIDEGATE_NOTIFY": given})


def test_a_spec_s_own_channels_count_be_it_none():
    default = read_channels({"TIDEGATE_NOTIFY": "[{type: slack_webhook}]"})
    assert choose_channels(Alerts(), default) == default
    assert choose_channels(Alerts(notify=()), default) == ()
